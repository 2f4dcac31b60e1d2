"""Mails that leave the house."""
