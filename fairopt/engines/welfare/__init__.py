"""Alpha-fair welfare and fairness on dominant shares, by a structured interior point."""
