"""`python -m farandole`: the command line, whatever the PATH is."""

from farandole.cli import main

if __name__ == "__main__":
    main()
