"""Claude behind the agents: what is asked, how a reply is read, what a call costs and how fast calls may go."""
