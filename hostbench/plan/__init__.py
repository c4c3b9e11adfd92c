"""From a suite to ordered cases with an estimate."""
