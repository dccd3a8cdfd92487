"""Alpha-fair welfare of thousands of users on a few types of servers, many of them at their limits."""
