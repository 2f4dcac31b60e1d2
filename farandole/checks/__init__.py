"""What `farandole doctor` checks: what the project declares, the services it stands on, and how its work goes."""
