"""``python -m onlinear`` is the command ``onlinear``."""

from onlinear.cli import main

if __name__ == "__main__":
    main()
