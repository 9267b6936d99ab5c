"""Writes what a shell needs to complete the commands of anabranch, or a manual page.

    anabranch completion bash > /etc/bash_completion.d/anabranch
    anabranch completion man > /usr/local/share/man/man1/anabranch.1
"""
from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from . import __main__ as commands
from .version import __version__

_BASH = """_anabranch() {
  local words
  if [ "$COMP_CWORD" -eq 1 ]; then words="%s"; else
    case "${COMP_WORDS[1]}" in
%s
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "${COMP_WORDS[COMP_CWORD]}") $(compgen -f -- "${COMP_WORDS[COMP_CWORD]}"))
}
complete -o filenames -F _anabranch anabranch
"""


#: What all commands end with. ``run`` and ``launch`` end as their scripts do.
EXIT_CODES = ((0, "all went well"), (1, "it did not, and a line on the standard error says why"),
              (2, "there is no such command or argument"))


def parsers() -> dict[str, argparse.ArgumentParser]:
    """dict: command -> its ArgumentParser."""
    return {name: commands.command(name).parser() for name in sorted(commands.COMMANDS)}


def _options(made):
    return sorted(option for action in made._actions for option in action.option_strings)


def bash() -> str:
    """str: completion for bash."""
    cases = "\n".join('      %s) words="%s" ;;' % (name, " ".join(_options(made))) for name, made in parsers().items())
    return _BASH % (" ".join(sorted(commands.COMMANDS)), cases)


def zsh() -> str:
    """str: completion for zsh, by means of its emulation of bash."""
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
    """Text as troff takes it."""
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
    """ArgumentParser: of ``anabranch completion``."""
    made = argparse.ArgumentParser(prog="anabranch completion", description=(__doc__ or "").partition("\n")[0])
    made.add_argument("kind", choices=sorted(_KINDS), help="what to write")
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """Runs ``anabranch completion``.

    Args:
        argv (list of str, optional): arguments; those of the process by default.

    Returns:
        int: 0.
    """
    sys.stdout.write(_KINDS[parser().parse_args(argv).kind]())
    return 0
