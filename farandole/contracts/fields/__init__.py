"""What a field may be: from a class's annotations to kinds of values, and what has no faithful form."""
