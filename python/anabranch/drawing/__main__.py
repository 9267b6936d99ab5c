"""python -m anabranch.drawing FILE.dot [PICTURE]: draws a DOT file; PICTURE is FILE.svg when missing."""
import argparse
import os

from . import parse_dot, write_picture


def main():
    parser = argparse.ArgumentParser(prog="python -m anabranch.drawing", description="Draws a graph written as DOT.")
    parser.add_argument("dot", help="DOT file to draw, written by Anabranch.")
    parser.add_argument("picture", nargs="?", help="Picture to write: .svg (default), or .png or .pdf with Graphviz.")
    arguments = parser.parse_args()
    with open(arguments.dot, encoding="utf-8") as f:
        graph = parse_dot(f.read())
    picture = arguments.picture or os.path.splitext(arguments.dot)[0] + ".svg"
    write_picture(graph, picture)
    print(picture)


if __name__ == "__main__":
    main()
