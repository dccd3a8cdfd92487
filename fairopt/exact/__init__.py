"""Max-min of small clusters in rational arithmetic: for engines and judges alike."""
