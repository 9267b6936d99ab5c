#!/usr/bin/env python3
"""Finds words that docs/understand/glossary.md has replaced: `check_words.py [--count] [--text] [PATH...]`.

Prints `file:line: word -> replacement: line` for each and exits with 1 if there are any. Identifiers are split into
their words, so `LoopTurn` and `loop_turn` count as "loop turn". --text ignores identifiers of C++; --count prints the
number of words per file.
"""
import argparse
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
HELD = ["src", "plugins", "python", "tests", "tools", "benchmarks", "docs", "examples", "cmake", "CMakeLists.txt",
        ".ci", "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "RELEASING.md",
        "CODE_OF_CONDUCT.md", "dev"]
ENDS = (".h", ".cc", ".cu", ".py", ".pyi", ".md", ".proto", ".cmake", "CMakeLists.txt", ".sh", ".js", "dev", ".ci/run",
        "nightly")

# The glossary, this file and its test, which list the old words, and a license text.
SKIPPED = re.compile(r"^(docs/understand/glossary\.md|tools/check_words\.py|tests/python/project/test_house\.py|"
                     r"python/anabranch/_core\.pyi|examples/data/README\.md)$")

# SIMD lanes are the field's word; so are the lanes of a row in the kernels for devices, and of a thread of PTX.
KERNELS = re.compile(r"^(src/ops/|plugins/simdevice/|plugins/cuda/|src/base/(ceiling|flags)|"
                     r"src/sparse/(record_loops|rule_vectors)|tests/cpp/(cuda|device|device_kernels)/|"
                     r"tools/(mutants/device|simdevice/)|"
                     r"tests/(python/devices/test_device(s|_elementwise|_many_elements)|support/device_(runs|texts))\.py)")
# Names in recorded data and errors of Fluid that its patterns match: a case's `wanted`, "lr_piece", "shall have".
DIFFERENTIAL = re.compile(r"^tools/differential/")
RECORDED = re.compile(r"^tests/support/layer_cases/training\.py")
# Examples and operators about the words of a language.
LANGUAGE = re.compile(r"word2vec|skip_gram|word_?window|imdb|lesson|/0[578]_|examples/README|sequence_data|datasets?/|"
                      r"dataset_|text|criteo")
PROSE = re.compile(r"\.md$")
LEGAL = re.compile(r"SECURITY|CODE_OF_CONDUCT")

# Nouns for people, after which "who" is right.
PEOPLE = ("users user people those anyone someone everyone person engineers engineer developers developer contributors "
          "contributor authors readers reader maintainers maintainer operators reviewers attacker teams").split()
COMPARED = "longer second reason more less later earlier worse better slower faster larger smaller different other"
NOUN = "a an the one each every no its their of first last second this that these all another frame few"


def any_of(words):
    return "(%s)" % "|".join(words.split())


# (pattern, replacement, paths where it is allowed). Patterns see text in lower case, with identifiers split.
WORDS = [
    (r"\bturns?\b(?! (on|off|out|into|it|them|to)\b)(?<!in turn)", "iteration; mutex", None),
    (r"\bbehind\b", "after", None),
    (r"\bbeside\b", "with, compared with, next to", None),
    (r"\banew\b", "again", None),
    (r"\bbut for\b", "except", None),
    (r"\b(so|as) many\b(?! (\w+ )?as)", "N", None),
    (r"\b(is|are|was|were|be) no\b(?<!there is no)(?<!there are no)(?<!there was no)(?<!there were no)"
     r"(?<!there be no)(?! %s)" % any_of(COMPARED), "is not a", None),
    (r"\bof (its|their|his|our|your) own\b", "its own", None),
    (r"\b(hears?|heard) (of|that|from)\b", "is notified of", None),
    (r"\b(whoever|whatever|whosoever)\b", "any", None),
    (r"\bwhom?\b" + "".join("(?<!%s who)(?<!%s whom)" % (noun, noun) for noun in PEOPLE),
     "which, that; who is for people", None),
    (r"\b%s looks?\b(?! (at|up|for|like|into)\b)" % any_of(NOUN), "signature, check", None),
    (r"\blook-ups?\b", "lookup", None),
    (r"\blanes?\b", "queue, thread", KERNELS),
    (r"\btwins?\b", "device copy", None),
    (r"\bhome\b(?<!hadoop home)(?<!hdfs home)(?<!data home)(?<!cuda home)(?<![\"/]home)(?! (directory|folder|page))",
     "host memory", None),
    (r"\bteams?\b", "thread pool", PROSE),
    (r"\baside\b", "disabled for this step", None),
    (r"\bhand(s|ed|ing)? (out|on|in|over)\b", "broadcast, forward, pass on", None),
    (r"\b(takes?|took|taken|taking) in\b(?! (the |a |their |this |that |any |program |plan )?(order|place|turn))",
     "fuse", None),
    (r"\bshall\b", "must, will", DIFFERENTIAL),
    (r"\bwants?\b|\bwanted\b", "requires, needs, is requested", DIFFERENTIAL),
    (r"\bbegins\b", "starts", None),
    (r"\b(in|into) the place of\b|\bin (its|their) place\b|\btakes? the place of\b", "instead of, in place", None),
    (r"\b(device|node|fault|step|run) words?\b", "status", LANGUAGE),
    (r"\bpieces?\b", "chunk (of a file), slice (of a tensor), range", RECORDED),
    (r"\bwithout (a )?height\b|\btables? that grows?\b", "growable table", None),
    (r"\bbefore the softmax\b", "logits", None),
    (r"\bmodels? of (clicks|tastes)\b|\bclick models?\b", "CTR models, recommenders", None),
    (r"\b(the original|the real thing)\b(?! \w)", "Fluid 1.8.5", None),
    (r"\bthe place of (a|the|its|each) (replica|node|variable|device|value|run)\b", "device, location", None),
    (r"\b(stem of the|the begin of)\b", "base; start", None),
    (r"\bnobody\b|\bsomebody\b", "no thread, no node", LEGAL),
]
COMPILED = [(re.compile(pattern), instead, allowed) for pattern, instead, allowed in WORDS]

# A sentence that opens with a relative clause: "What a product needs is", "Who takes memory says what for".
CLAUSE = re.compile(r"\b(What|Who|Which|Where)")
RELATIVE = re.compile(r"(?:^|[.!:] )(?:[#/*\s\"'-]*)(What|Who|Whoever|Whatever|Which|Where what) [a-z][^.?]*[.]")

CODE = re.compile(r"`[^`\n]*`")
SPLIT = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def words_of(text):
    """The text in lower case, with identifiers split into words."""
    return SPLIT.sub(" ", text).replace("_", " ").lower()


def texts_only(line):
    """The comment and the string literals of a line of C++."""
    strings = " ".join(re.findall(r'"((?:\\.|[^"\\])*)"', line))
    return strings + " " + (line.split("//", 1)[1] if "//" in line else "")


def seen_of(text, cxx, only_text):
    """The text that is checked, with the same lines."""
    if not cxx:
        return CODE.sub("``", text)  # code that a page quotes is checked where it is defined
    if not only_text:
        return text
    return "\n".join(re.sub(r"\w*[_:()]\w*", " ", texts_only(line)) for line in text.split("\n"))


def relatives(path, lines, cxx):
    """Yields (line number, word) of sentences that open with a relative clause."""
    for number, line in enumerate(lines, 1):
        heading = path.endswith(".md") and line.lstrip().startswith("#")
        if CLAUSE.search(line) and not heading and (not cxx or "//" in line):
            for match in RELATIVE.finditer(texts_only(line) if cxx else line):
                yield number, match.group(1) + " ... (a relative clause as the subject)"


def found_in(path, text, only_text=False):
    """Yields (line number, word, replacement, line)."""
    cxx = path.endswith((".h", ".cc", ".cu"))
    lines, plain = text.split("\n"), words_of(seen_of(text, cxx, only_text))
    for pattern, instead, allowed in COMPILED:
        if not (allowed and allowed.search(path)):
            for match in pattern.finditer(plain):
                number = plain.count("\n", 0, match.start()) + 1
                yield number, match.group(), instead, lines[number - 1].strip()
    for number, word in relatives(path, lines, cxx):
        yield number, word, "subject first", lines[number - 1].strip()


def files(paths):
    listed = subprocess.check_output(["git", "ls-files", "--"] + paths, cwd=ROOT, universal_newlines=True).splitlines()
    return [path for path in listed if path.endswith(ENDS) and not SKIPPED.search(path)]


def found(paths, only_text=False):
    """[(path, line number, word, replacement, line)] of files and folders."""
    result = []
    for path in files(paths):
        with open(os.path.join(ROOT, path), encoding="utf-8") as file:
            result += [(path, *one) for one in found_in(path, file.read(), only_text)]
    return result


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", action="store_true", help="Print the number of words per file.")
    parser.add_argument("--text", action="store_true", help="Check comments and strings of C++, not its identifiers.")
    parser.add_argument("paths", nargs="*", help="Files and folders, from the root on (default: all that are held).")
    options = parser.parse_args(arguments)
    hits = sorted(found(options.paths or HELD, options.text))
    for path in sorted({hit[0] for hit in hits}) if options.count else ():
        print("%5d %s" % (sum(hit[0] == path for hit in hits), path))
    for path, number, word, instead, line in [] if options.count else hits:
        print("%s:%d: %s -> %s: %s" % (path, number, word, instead, line[:160]))
    print("%d words to replace" % len(hits))
    return 1 if hits else 0


if __name__ == "__main__":
    sys.exit(main())
