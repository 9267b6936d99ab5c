"""Writes shell completion for the commands of anabranch, or a manual page.

    anabranch completion bash > /etc/bash_completion.d/anabranch
    anabranch completion man > /usr/local/share/man/man1/anabranch.1
"""
from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from . import __main__ as commands
from .looking.command_line import Parser
from .version import __version__

_BASH = """_anabranch() {
  local options
  if [ "$COMP_CWORD" -eq 1 ]; then options="%s"; else
    case "${COMP_WORDS[1]}" in
%s
    esac
  fi
  COMPREPLY=($(compgen -W "$options" -- "${COMP_WORDS[COMP_CWORD]}") $(compgen -f -- "${COMP_WORDS[COMP_CWORD]}"))
}
complete -o filenames -F _anabranch anabranch
"""


#: Exit codes of all commands. ``run`` and ``launch`` end with the codes of their scripts.
EXIT_CODES = ((0, "success"), (1, "failure; a line on stderr gives the reason"),
              (2, "the command or an argument does not exist"))


def parsers() -> dict[str, argparse.ArgumentParser]:
    """dict: command -> its ArgumentParser."""
    return {name: commands.command(name).parser() for name in sorted(commands.COMMANDS)}


def _options(made):
    return sorted(option for action in made._actions for option in action.option_strings)


def bash() -> str:
    """str: completion for bash."""
    cases = "\n".join('      %s) options="%s" ;;' % (name, " ".join(_options(made)))
                      for name, made in parsers().items())
    return _BASH % (" ".join(sorted(commands.COMMANDS)), cases)


def zsh() -> str:
    """str: completion for zsh, which emulates bash."""
    return "autoload -U +X bashcompinit && bashcompinit\n" + bash()


def fish() -> str:
    """str: completion for fish."""
    lines = ["complete -c anabranch -n __fish_use_subcommand -a %s -d '%s'" % (name, text)
             for name, (_, text) in sorted(commands.COMMANDS.items())]
    for name, made in parsers().items():
        for action in made._actions:
            for option in action.option_strings:
                kind = "-l " + option[2:] if option.startswith("--") else "-s " + option[1:]
                lines.append("complete -c anabranch -n '__fish_seen_subcommand_from %s' %s" % (name, kind))
    return "\n".join(lines) + "\n"


def _roff(text):
    """Escapes text for troff."""
    return "\n".join(("\\&" + line if line[:1] in ".'" else line).replace("-", "\\-") for line in text.splitlines())


def man() -> str:
    """str: a manual page, section 1."""
    parts = ['.TH ANABRANCH 1 "" "anabranch %s" "User Commands"' % __version__, ".SH NAME",
             "anabranch \\- trains, runs and serves models of static graphs", ".SH SYNOPSIS",
             ".B anabranch", ".I COMMAND", "\\&..."]
    for name, made in parsers().items():
        parts += [".SH ANABRANCH " + name.upper(), commands.COMMANDS[name][1] + ".", ".nf",
                  _roff(made.format_help()), ".fi"]
    parts += [".SH EXIT STATUS", *("%d: %s." % pair for pair in EXIT_CODES)]
    return "\n".join(parts) + "\n"


_KINDS = {"bash": bash, "fish": fish, "man": man, "zsh": zsh}


def parser() -> argparse.ArgumentParser:
    """ArgumentParser: the parser of ``anabranch completion``."""
    made = Parser(prog="anabranch completion", description=(__doc__ or "").partition("\n")[0])
    made.add_argument("kind", choices=sorted(_KINDS), help="Shell, or man for the manual page.")
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """Runs ``anabranch completion``.

    Args:
        argv (list of str, optional): arguments. Default: those of the process.

    Returns:
        int: 0.
    """
    sys.stdout.write(_KINDS[parser().parse_args(argv).kind]())
    return 0
