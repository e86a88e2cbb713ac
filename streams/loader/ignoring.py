"""What of a folder is left out: what nobody means to load, and what `.gitignore` and `.thalwegignore` name.

Patterns mean what they mean to git, and files below a folder that is left out are not looked at. A `.thalwegignore`
wins over every `.gitignore`, and the nearest file of a kind over those above it. A repository inside another one has
rules of its own. A pattern without wildcards in a `.thalwegignore`, such as `!build/`, brings back what is left out
by default.
"""

import os
import re
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Literal, NamedTuple

from pathspec.patterns.gitignore.base import GitIgnorePatternError
from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

MAX_IGNORE_FILE_BYTES = 256 * 1024  # a file of patterns that takes seconds for each of thousands of files is none
SHOWN_NAMES = 3

Reason = Literal[
    "version_control", "dependencies", "build", "lock_file", "temporary", "thalwegignore", "gitignore", "hidden"
]
LABELS: Mapping[Reason, str] = {
    "version_control": "of version control",
    "dependencies": "of dependencies",
    "build": "of builds",
    "lock_file": "lock files",
    "temporary": "temporary",
    "thalwegignore": "by .thalwegignore",
    "gitignore": "by .gitignore",
    "hidden": "hidden",
}

_VERSION_CONTROL = {".git", ".hg", ".svn", ".bzr", ".jj", "_darcs"}  # `.git` is a file in worktrees and submodules
_DEPENDENCIES = {
    "node_modules", "bower_components", "jspm_packages", "site-packages", ".venv", "venv", "__pypackages__", ".yarn",
    ".pnpm-store", ".bundle",
}  # fmt: skip
_BUILDS = {
    "__pycache__", ".tox", ".nox", ".eggs", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".hypothesis", "htmlcov",
    ".ipynb_checkpoints", ".next", ".nuxt", ".svelte-kit", ".angular", ".astro", ".docusaurus", ".turbo", ".vite",
    ".parcel-cache", ".nyc_output", ".gradle", ".dart_tool", ".terraform", ".cache",
}  # fmt: skip
_PROJECT = {
    "package.json", "pyproject.toml", "setup.py", "setup.cfg", "Cargo.toml", "go.mod", "pom.xml", "build.gradle",
    "build.gradle.kts", "build.sbt", "project.clj", "Makefile", "GNUmakefile", "makefile", "CMakeLists.txt",
    "meson.build", "configure.ac", "pubspec.yaml", "mix.exs", "dune-project",
}  # fmt: skip
_BESIDE: Mapping[str, tuple[Reason, set[str]]] = {
    **dict.fromkeys(("build", "dist", "target", "out"), ("build", _PROJECT)),
    "_build": ("build", {"conf.py", *_PROJECT}),
    "coverage": ("build", {"package.json"}),
    "_site": ("build", {"_config.yml", "_config.toml"}),
    "vendor": ("dependencies", {"go.mod", "composer.json", "Gemfile", "Cargo.toml"}),
}
"""Folders whose names people give to documents too: left out beside a file of a project that makes such a folder."""
_INSIDE: tuple[tuple[str, Reason], ...] = (
    ("pyvenv.cfg", "dependencies"),
    ("bin/activate", "dependencies"),  # virtual environments of older tools
    ("conda-meta", "dependencies"),
    ("CACHEDIR.TAG", "build"),
)
"""What shows by being in a folder that it was made, whatever its name."""
_CACHE_SIGNATURE = b"Signature: 8a477f597d28d172789f06886806bc55"  # bford.info/cachedir
_LOCK_FILES = {
    "package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "bun.lock", "bun.lockb", "deno.lock",
    "poetry.lock", "uv.lock", "pdm.lock", "pipfile.lock", "pylock.toml", "pixi.lock", "conda-lock.yml", "cargo.lock",
    "gemfile.lock", "composer.lock", "go.sum", "go.work.sum", "mix.lock", "pubspec.lock", "podfile.lock", "flake.lock",
    "package.resolved", "packages.lock.json", "paket.lock", "gradle.lockfile", "stack.yaml.lock", "chart.lock",
    ".terraform.lock.hcl",
}  # fmt: skip
_OF_BOTH: Mapping[str, Reason] = dict.fromkeys(_VERSION_CONTROL, "version_control")
_OF_FILES: Mapping[str, Reason] = dict.fromkeys(_LOCK_FILES, "lock_file")
_OF_FOLDERS: Mapping[str, Reason] = {
    **dict.fromkeys(_DEPENDENCIES, "dependencies"),
    **dict.fromkeys(_BUILDS, "build"),
    "__macosx": "temporary",  # beside what an archive of a Mac holds
}
_TEMPORARY = re.compile(
    r"~\$.*|.*[~#]|\.#.*|.*\.(sw[opx]|tmp|temp|part|partial|crdownload|download)"  # of editors, office and browsers
    r"|\.ds_store|thumbs\.db|ehthumbs\.db|desktop\.ini|\._.*",  # of desktops and archives
    re.DOTALL,
)


class UnreadableRules(Exception):
    """What an ignore file leaves out is not known, so nothing of its folder is taken."""

    def __init__(self, file: str, why: str) -> None:
        super().__init__(f"{why} So what it leaves out is not known, and nothing of its folder is taken.")
        self.file = file


class LeftOut(NamedTuple):
    """A file, or a folder with all that is in it; `document_id` would be its id, or what its files' ids begin with."""

    path: str
    document_id: str
    reason: Reason


class _Pattern(NamedTuple):
    """A line of an ignore file; without `excludes` it begins with `!`."""

    line: str
    excludes: bool
    regex: re.Pattern[str]


@dataclass(frozen=True)
class _IgnoreFile:
    """The patterns of a file in the folder `place`, the last one first."""

    place: str
    patterns: tuple[_Pattern, ...]

    def last_match(self, path: str, *, is_folder: bool) -> _Pattern | None:
        """The pattern that decides about the path itself; not about a folder that it is in."""
        relative = path[len(self.place) :].lstrip("/")
        for pattern in self.patterns:
            if _matches(pattern, relative) or (is_folder and _matches(pattern, relative + "/")):
                return pattern
        return None


def _matches(pattern: _Pattern, path: str) -> bool:
    """A path with a slash at its end is matched by patterns for folders alone."""
    match = pattern.regex.match(path)
    if match is None:
        return False
    slash = match.end(_SLASH) if _SLASH in match.re.groupindex else -1
    return slash == len(path) if path.endswith("/") else slash == -1


_CLASSES = {
    "alpha": "a-zA-Z",
    "digit": "0-9",
    "alnum": "a-zA-Z0-9",
    "lower": "a-z",
    "upper": "A-Z",
    "xdigit": "0-9a-fA-F",
}
_STAR = "[^/]*"  # what pathspec makes of `*`
_GROUP = re.compile(r"(?<!\\)[(|)]")
_SLASH = "ps_d"  # the group in which pathspec keeps the slash after a folder that was matched


@dataclass(frozen=True)
class Rules:
    """What is left out in the folder `place`, whose entries are `names`. Without `ignore` only what is hidden, with
    `hidden` not even that."""

    ignore: bool = True
    hidden: bool = False
    place: str = ""
    names: Collection[str] = ()
    of_git: tuple[_IgnoreFile, ...] = ()
    of_thalweg: tuple[_IgnoreFile, ...] = ()

    def entering(self, folder: str | Path, names: Collection[str]) -> "Rules":
        """The rules in a folder below, with those of its own ignore files. Raises UnreadableRules."""
        place = os.path.abspath(folder)  # noqa: PTH100 - links are kept: patterns are about what the user sees
        entered = replace(self, place=place, names=names)
        if not self.ignore:
            return entered
        above = () if ".git" in names else self.of_git
        return replace(
            entered,
            of_git=(*above, *_read(place, ".gitignore", names)),
            of_thalweg=(*self.of_thalweg, *_read(place, ".thalwegignore", names)),
        )

    def why_not(self, name: str, *, is_folder: bool) -> Reason | None:
        """Why the entry of this name is left out; None where it is taken."""
        if self.ignore:
            path = os.path.join(self.place, name)  # noqa: PTH118
            said = _decided(self.of_thalweg, path, is_folder=is_folder)
            if said is not None and said.excludes:
                return "thalwegignore"
            if said is not None and not set("*?[") & set(said.line):
                return None
            if (reason := self._unwanted(name, path, is_folder=is_folder)) is not None:
                return reason
            if (
                said is None
                and (said := _decided(self.of_git, path, is_folder=is_folder)) is not None
                and said.excludes
            ):
                return "gitignore"
        return "hidden" if name.startswith(".") and not self.hidden else None

    def _unwanted(self, name: str, path: str, *, is_folder: bool) -> Reason | None:
        """What nobody means."""
        lower = name.lower()
        if (reason := _OF_BOTH.get(lower) or (_OF_FOLDERS if is_folder else _OF_FILES).get(lower)) is not None:
            return reason
        if not is_folder:
            return "temporary" if _TEMPORARY.fullmatch(lower) else None
        if lower.endswith(".egg-info"):
            return "build"
        reason, beside = _BESIDE.get(lower, ("build", set()))
        if not beside.isdisjoint(self.names):
            return reason
        return next((why for inside, why in _INSIDE if _is_there(os.path.join(path, inside))), None)  # noqa: PTH118


def rules_around(place: Path, root: Path | None, rules: Rules) -> tuple[Rules, Reason | None]:
    """The rules in the folder that holds `place`, by the ignore files from the root, or from the top of its git
    repository, down to there; and why a folder between the root and the place is left out. Raises UnreadableRules.

    The root, or the place where there is none, was named: where patterns leave it out, those above do not count.
    """
    place = Path(os.path.abspath(place))  # noqa: PTH100
    base = place if root is None else Path(os.path.abspath(root))  # noqa: PTH100
    top = next((each for each in (place, *place.parents) if os.path.lexists(each / ".git")), base)
    chain = [each for each in reversed(place.parents) if each.is_relative_to(top) or each.is_relative_to(base)]
    for each, below in pairwise([*chain, place]):
        rules = rules.entering(each, _entries(each))
        if base.is_relative_to(below):
            if _leave_out(rules, str(below)):
                rules = replace(rules, of_git=(), of_thalweg=())
        elif below != place and (reason := rules.why_not(below.name, is_folder=True)) is not None:
            return rules, reason
    return rules, None


def by_reason(items: Iterable[LeftOut]) -> dict[Reason, list[str]]:
    """The paths, each once."""
    paths: dict[Reason, dict[str, None]] = {}
    for item in items:
        paths.setdefault(item.reason, {})[item.path] = None
    return {reason: list(paths[reason]) for reason in LABELS if reason in paths}


def describe_left_out(left_out: Mapping[Reason, Sequence[str]]) -> str:
    """How many are left out for which reason, with the first names, and what takes them."""
    parts = []
    for reason, names in left_out.items():
        more = ", …" if len(names) > SHOWN_NAMES else ""
        parts.append(f"{len(names):,} {LABELS[reason]} ({', '.join(names[:SHOWN_NAMES])}{more})")
    switches = [
        *(["--no-ignore"] if left_out.keys() - {"hidden"} else []),
        *(["--hidden"] if "hidden" in left_out else []),
    ]
    return f"left out: {', '.join(parts)}; to load them: {' '.join(switches)}"


def _decided(files: Sequence[_IgnoreFile], path: str, *, is_folder: bool) -> _Pattern | None:
    """The pattern of the nearest file that has one for the path."""
    found = (each.last_match(path, is_folder=is_folder) for each in reversed(files))
    return next((pattern for pattern in found if pattern is not None), None)


def _leave_out(rules: Rules, path: str) -> bool:
    files = (rules.of_thalweg, rules.of_git)
    said = next((each for of in files if (each := _decided(of, path, is_folder=True)) is not None), None)
    return said is not None and said.excludes


def _is_there(path: str) -> bool:
    if not path.endswith("CACHEDIR.TAG"):
        return os.path.exists(path)  # noqa: PTH110
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            return file.read(len(_CACHE_SIGNATURE)) == _CACHE_SIGNATURE
    except OSError:
        return False


def _entries(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208
    except OSError:
        return []


def _read(place: str, name: str, names: Collection[str]) -> tuple[_IgnoreFile, ...]:
    """The ignore file of a folder, none where it has none; a folder or a device of this name is not one."""
    file = Path(place, name)
    if name not in names or not file.is_file():
        return ()
    try:
        with file.open("rb") as opened:
            content = opened.read(MAX_IGNORE_FILE_BYTES + 1)
    except OSError as error:
        raise UnreadableRules(str(file), f"The file cannot be read: {error.strerror}.") from error
    if len(content) > MAX_IGNORE_FILE_BYTES:
        raise UnreadableRules(str(file), f"The file is over {MAX_IGNORE_FILE_BYTES:,} bytes.")
    if b"\0" in content:
        raise UnreadableRules(str(file), "The file is not text in UTF-8; save it as such.")
    return (_IgnoreFile(place, _patterns(content)),)


def _as_read(line: str) -> str:
    """The same pattern in words that pathspec reads as git does: `*/` is any folder, `a/**/` any folder below `a`."""
    return re.sub(r"^(!?)\*+/\s*$", r"\1?*/", re.sub(r"(?<=/)\*\*/\s*$", "**/?*/", line))


@lru_cache(maxsize=256)
def _patterns(content: bytes) -> tuple[_Pattern, ...]:
    """The last one first. Bytes that are not UTF-8 match the same bytes in names; what is not a pattern to git is
    none here."""
    text = os.fsdecode(content.removeprefix(b"\xef\xbb\xbf"))
    for name, characters in _CLASSES.items():
        text = text.replace(f"[:{name}:]", characters)
    patterns = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # of a `[` in brackets, which means itself
        for line in reversed(text.split("\n")):
            with suppress(GitIgnorePatternError):
                read = GitIgnoreSpecPattern(_as_read(line.removesuffix("\r")))
                if read.include is not None and read.regex is not None:
                    patterns.append(_Pattern(line, read.include, re.compile(_without_retries(read.regex.pattern))))
    return tuple(patterns)


def _without_retries(regex: str) -> str:
    """The same, without the time of another try for each `*` of several: what is between two is best matched where
    it comes first."""
    first, *between = regex.split(_STAR)
    if not between:
        return regex
    *middle, last = between
    once = (f"{_STAR}{part}" if _GROUP.search(part) else f"(?>{_STAR}?{part})" for part in middle)
    return "".join((first, *once, _STAR, last))
