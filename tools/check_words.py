#!/usr/bin/env python3
"""Finds words that docs/understand/glossary.md has replaced: `check_words.py [--count] [--text] [PATH...]`.

Prints `file:line: word -> replacement: line` for each and exits with 1 if there are any. Identifiers are split into their
words, so `LoopTurn` and `loop_turn` count as "loop turn". --text ignores identifiers of C++; --count prints one number a file.
"""
import argparse
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FOLDERS = ["src", "plugins", "python", "docs", "examples", "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md",
           "CHANGELOG.md", "RELEASING.md", "CODE_OF_CONDUCT.md", "dev", "tests/README.md"]
ENDS = (".h", ".cc", ".cu", ".py", ".pyi", ".md", ".proto", "dev")

# Files whose words are those of others: names of Fluid 1.8.5, and this page of old and new words.
SKIPPED = re.compile(r"^(docs/understand/glossary\.md|python/anabranch/_core\.pyi|docs/.*\.svg|examples/data/README\.md)$")

# SIMD lanes are the field's word; so are the lanes of a row in the kernels for devices.
_KERNELS = re.compile(r"^(src/ops/|plugins/simdevice/|plugins/cuda/|src/base/(ceiling|flags)|src/sparse/record_loops)")
# Data of an example, or an operator, that counts words of a language.
_LANGUAGE = re.compile(r"word2vec|skip_gram|wordwindow|word_window|imdb|lesson|/0[578]_|examples/README|sequence_data|datasets?/|dataset_|"
                       r"text|criteo")

# (pattern, replacement, paths where it is allowed). Patterns see text in lower case, with identifiers split.
WORDS = [
    (r"\bturns?\b(?! (on|off|out|into|it|them|to)\b)(?<!in turn)", "iteration; mutex; `in turn` may stay", None),
    (r"\bbehind\b", "after", None),
    (r"\bbeside\b", "with, compared with, next to", None),
    (r"\banew\b", "again", None),
    (r"\bbut for\b", "except", None),
    (r"\b(so|as) many\b(?! (\w+ )?as)", "N", None),
    (r"(?<!there )\b(is|are|was|were|be) no\b(?! (longer|second|reason|more|less|later|earlier|worse|better|slower|faster|larger|smaller|"
     r"different|other))", "is not a", None),
    (r"\bof (its|their|his|our|your) own\b", "its own", None),
    (r"\b(hears?|heard) (of|that|from)\b", "is notified of", None),
    (r"\b(whoever|whatever|whosoever)\b", "whatever ... -> any", None),
    (r"(?<!users )(?<!user )(?<!people )(?<!those )(?<!anyone )(?<!someone )(?<!somebody )(?<!everyone )(?<!person )"
     r"(?<!engineers )(?<!engineer )(?<!developers )(?<!developer )(?<!contributors )(?<!contributor )(?<!authors )"
     r"(?<!readers )(?<!reader )(?<!maintainers )(?<!maintainer )(?<!operators )(?<!reviewers )(?<!attacker )(?<!teams )"
     r"\b(who|whom)\b", "which, the node that; who is for people", None),
    (r"\b(a|an|the|one|each|every|no|its|their|of|first|last|second|this|that|these|all|another|frame|few) looks?\b(?! (at|up|"
     r"for|like|into)\b)", "signature, check", None),
    (r"\blook-ups?\b", "lookup", None),
    (r"\blanes?\b", "stream, thread", _KERNELS),
    (r"\btwins?\b", "device copy", None),
    (r"(?<!hadoop )(?<!hdfs )(?<!data )\bhome\b(?! (directory|folder|page))", "host memory, resident device", None),
    (r"\bteams?\b", "thread pool", re.compile(r"\.md$")),
    (r"\baside\b", "disabled for this step", None),
    (r"\bhand(s|ed|ing)? (out|on|in|over)\b", "broadcast, forward, pass on", None),
    (r"\b(takes?|took|taken|taking) in\b(?! (the |a |their |this |that |any |program |plan )?(order|place|turn))", "fuse", None),
    (r"\bshall\b", "must, will", None),
    (r"\bwants?\b|\bwanted\b", "requires, needs, is requested", None),
    (r"\bbegins?\b(?= (a |the )?(thread|server|process|worker))|\bbegins\b", "starts", None),
    (r"\b(in|into) the place of\b|\bin (its|their) place\b|\btakes? the place of\b", "instead of, in place", None),
    (r"\b(device|node|fault|step|run) words?\b", "status words -> status, flags", _LANGUAGE),
    (r"\bpieces?\b", "chunk (of a file), slice (of a tensor), range", None),
    (r"\bwithout (a )?height\b|\btables? that grows?\b", "growable table", None),
    (r"\bbefore the softmax\b", "logits", None),
    (r"\bmodels? of (clicks|tastes)\b|\bclick models?\b", "CTR models, recommenders", None),
    (r"\b(the original|the real thing)\b(?! \w)", "Fluid 1.8.5", None),
    (r"\bthe place of (a|the|its|each) (replica|node|variable|device|value|run)\b", "device, position, location", None),
    (r"\b(stem of the|the begin of)\b", "", None),
    (r"\bnobody\b|\bsomebody\b", "no thread, no node; people only", re.compile(r"SECURITY|CODE_OF_CONDUCT")),
]
COMPILED = [(re.compile(pattern), instead, allowed) for pattern, instead, allowed in WORDS]

# A sentence that opens with a relative clause: "What a product needs is", "Who takes memory says what for".
RELATIVE = re.compile(r"(?:^|[.!:] )(?:[#/*\s\"'-]*)(What|Who|Whoever|Whatever|Which|Where what) [a-z][^.?]*[.]")

CODE = re.compile(r"`[^`]*`")
SPLIT = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
IDENTIFIER = re.compile(r"[A-Za-z_]\w*")


def _split(match):
    return SPLIT.sub(" ", match.group()).replace("_", " ")


def texts_only(line):
    """The comment and the string literals of a line of C++."""
    strings = " ".join(re.findall(r'"((?:\\.|[^"\\])*)"', line))
    comment = line.split("//", 1)[1] if "//" in line else ""
    return strings + " " + comment


def found_in(path, text, only_text=False):
    """Yields (line number, word, replacement, line)."""
    cxx = path.endswith((".h", ".cc", ".cu"))
    for number, line in enumerate(text.split("\n"), 1):
        seen = texts_only(line) if cxx and only_text else line
        # Code that a page or a comment quotes is checked where it is defined.
        seen = CODE.sub("``", seen) if not cxx else seen
        if only_text and cxx:
            seen = re.sub(r"\w*[_:()]\w*", " ", seen)
        plain = IDENTIFIER.sub(_split, seen).lower()
        for pattern, instead, allowed in COMPILED:
            if allowed and allowed.search(path):
                continue
            for match in pattern.finditer(plain):
                yield number, match.group(), instead, line.strip()
        if path.endswith((".md", ".py")) or cxx and "//" in line:
            for match in RELATIVE.finditer(texts_only(line) if cxx else line):
                if not line.lstrip().startswith("#") or not path.endswith(".md"):
                    yield number, match.group(1) + " ... (a relative clause as the subject)", "subject first", line.strip()


def files(paths):
    listed = subprocess.check_output(["git", "ls-files", "--"] + paths, cwd=ROOT, universal_newlines=True).splitlines()
    return [path for path in listed if path.endswith(ENDS) and not SKIPPED.search(path)]


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", action="store_true", help="Print the number of words per file.")
    parser.add_argument("--text", action="store_true", help="Check comments and strings of C++, not its identifiers.")
    parser.add_argument("paths", nargs="*", help="Files and folders, relative to the repository (default: all that are held).")
    options = parser.parse_args(arguments)
    total = 0
    for path in files(options.paths or FOLDERS):
        with open(os.path.join(ROOT, path), encoding="utf-8") as file:
            found = list(found_in(path, file.read(), options.text))
        total += len(found)
        if options.count and found:
            print("%5d %s" % (len(found), path))
        elif not options.count:
            for number, word, instead, line in found:
                print("%s:%d: %s -> %s: %s" % (path, number, word, instead or "reword", line[:160]))
    print("%d words to replace" % total)
    return 1 if total else 0


if __name__ == "__main__":
    sys.exit(main())
