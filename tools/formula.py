"""Formulas of docstrings as TeX: they are written to be read in a terminal, and pages show the same as mathematics.

    tex("lex max min_n  sigma_n / phi_n,    sigma_n = x_n max_r d[n,r] / C_r")

A line, and what follows a comma or a semicolon and two spaces, is a row. `x_n`, `x[n,i]`, `sum_{i: i > 1}` have
indices, `a / b` is a fraction of what stands next to the stroke (a sum takes one factor along), Greek letters go by
their names, and other words of two letters or more are words. What is no formula is refused."""

from __future__ import annotations

import re

_GREEK = {name: f"\\{name}" for name in ("alpha", "beta", "gamma", "delta", "kappa", "lambda", "mu", "rho", "sigma",
                                         "tau", "Lambda")}  # fmt: skip
_GREEK |= {"phi": r"\varphi", "lam": r"\lambda", "eps": r"\varepsilon"}
_SYMBOL = _GREEK | {"infinity": r"\infty", "inf": r"\infty"}
_OPERATORS = {"max": r"\max", "min": r"\min", "log": r"\log", "sum": r"\sum", "sgn": r"\operatorname{sgn}"}
_RELATIONS = {"<=": r"\le", ">=": r"\ge", "!=": r"\ne", "=": "=", "+": "+", "-": "-", "<": "<", ">": ">", ",": ",",
              ";": ";", ":": r":", ".": ".", "*": r"\cdot", "=>": r"\Rightarrow"}  # fmt: skip
_TOKEN = re.compile(
    r"(?P<gap>\s{2,})|(?P<space>\s)|(?P<number>\d+(?:\.\d+)?)|(?P<lex>lex max min_[a-z]+)"
    r"|(?P<words>[a-z]{2,}(?:-[a-z]{2,})+(?![\w(]))"
    r"|(?P<name>[A-Za-z]+0?'?(?:_(?:[A-Za-z]+|\([^)]*\)|\{[^}]*\}))?)"
    r"|(?P<mark>=>|<=|>=|!=|[-+=<>,;:.^/()\[\]*])"
)
Token = tuple[str, str]


class NotAFormula(ValueError):
    """The text is something else, as code."""


def tex(text: str) -> str:
    """A block as TeX, its rows aligned to the left.

    Raises
    ------
    NotAFormula
        There is something in it that formulas do not have.
    """
    rows = [row.strip() for line in text.strip().splitlines() for row in re.split(r"(?<=[,;])\s{2,}", line.strip())]
    made = [_Row(row).tex() for row in rows if row]
    return "\\begin{aligned}\n" + " \\\\\n".join(f"& {row}" for row in made) + "\n\\end{aligned}"


class _Row:
    def __init__(self, text: str) -> None:
        self.tokens: list[Token] = []
        #: Tokens that follow a space.
        self.apart: set[int] = set()
        at = 0
        while at < len(text):
            found = _TOKEN.match(text, at)
            if found is None:
                raise NotAFormula(f"{text[at]!r} of {text!r} is in no formula")
            if found.lastgroup in ("space", "gap"):
                self.apart.add(len(self.tokens) + (found.lastgroup == "gap"))
            if found.lastgroup != "space":
                self.tokens.append((str(found.lastgroup), found[0]))
            at = found.end()
        self.at = 0

    def tex(self) -> str:
        made = self._sequence()
        if self.at < len(self.tokens):
            raise NotAFormula(f"a bracket closes that was not opened: {self.tokens[self.at][1]}")
        return made

    def _next(self) -> Token:
        return self.tokens[self.at] if self.at < len(self.tokens) else ("end", "")

    def _sequence(self, small: bool = False) -> str:
        """Up to a closing bracket; `small`: in an exponent, where fractions are written with a stroke."""
        out: list[str] = []
        while self._next()[1] not in (")", "]") and self._next()[0] != "end":
            kind, text = self._next()
            if text == "/":
                self.at += 1
                if not out or out[-1] in _RELATIONS.values():
                    raise NotAFormula("nothing is divided")
                below = self._factor(bare=not small)
                out[-1] = f"{out[-1]}/{below}" if small else rf"\frac{{{_bare(out[-1])}}}{{{below}}}"
            elif kind == "mark" and text in _RELATIONS:
                self.at += 1
                if text == "." and self._next()[0] != "end":
                    raise NotAFormula("a point stands inside")
                out.append(_RELATIONS[text])
            elif kind == "gap":
                self.at += 1
                out.append(r"\quad")
            else:
                out.append(self._factor())
        return " ".join(out)

    def _factor(self, bare: bool = False) -> str:
        """One factor with its indices, arguments and exponent; `bare`: without its brackets, as below a stroke."""
        kind, text = self._next()
        self.at += 1
        if text == "(":
            inside = self._closed(")")
            made = _bracketed(inside)
        elif text == "[":
            made = f"[ {self._closed(']')} ]"
        elif kind == "number":
            made = text
        elif kind == "lex":
            made = rf"\operatorname{{lex\,max\,min}}_{{{text.partition('_')[2]}}}"
        elif kind == "words":
            made = self._words(text)
        elif kind == "name":
            made = self._name(text)
            if text.partition("_")[0] == "sum" and bare:
                return f"{made} {self._factor()}"
        else:
            raise NotAFormula(f"{text!r} stands where a symbol should")
        made = self._raised(made)
        return _bare(made) if bare else made

    def _raised(self, made: str) -> str:
        while self._next()[1] in ("^", "(", "[") and (self._next()[1] == "^" or self._touches()):
            mark = self._next()[1]
            self.at += 1
            if mark == "^":
                if self._next()[1] == "(":
                    self.at += 1
                    made += f"^{{{self._closed(')', small=True)}}}"
                else:
                    made += f"^{{{self._factor()}}}"
            elif mark == "[":
                made += f"_{{{self._closed(']').replace(' ', '')}}}"
            else:
                made += ("" if "operatorname" in made else r"\!") + _bracketed(self._closed(")"))
        return made

    def _touches(self) -> bool:
        """Is the bracket that comes next an argument or an index? Only names have these."""
        return self.tokens[self.at - 1][0] == "name" and self.at not in self.apart

    def _closed(self, mark: str, small: bool = False) -> str:
        made = self._sequence(small)
        if self._next()[1] != mark:
            raise NotAFormula("a bracket is not closed")
        self.at += 1
        return made

    def _name(self, text: str) -> str:
        name, _, index = text.partition("_")
        below = f"_{{{_SYMBOL.get(index.strip('()'), index.strip('()'))}}}" if index else ""
        if index.startswith("{"):
            below = f"_{{{_Row(index.strip('{}')).tex()}}}"
        if name in _OPERATORS and (len(index) < 2 or index.startswith("{")):
            return _OPERATORS[name] + below
        if name.rstrip("'") in _SYMBOL:
            return _SYMBOL[name.rstrip("'")] + "'" * name.endswith("'") + below
        if name.endswith("0") and name[:-1] in _SYMBOL:
            return f"{_SYMBOL[name[:-1]]}^{{0}}{below}"
        if len(name.rstrip("'")) == 1:
            return name + below
        if len(index) > 1 and index not in _SYMBOL:
            return rf"\mathrm{{{name}\_{index}}}"
        if index or name.isupper():
            return rf"\mathrm{{{name}}}{below}"
        return self._words(name)

    def _words(self, first: str) -> str:
        said = [first]
        while True:
            kind, text = self._next()
            plain = kind == "words" or (kind == "name" and text.isalpha() and text.islower() and len(text) > 1)
            plain |= text == "a" and self.at + 1 < len(self.tokens) and _is_word(self.tokens[self.at + 1])
            if not plain or text in _SYMBOL or text in _OPERATORS:
                return rf"\text{{ {' '.join(said)} }}"
            said.append(text)
            self.at += 1


def _is_word(token: Token) -> bool:
    return token[0] == "words" or (token[0] == "name" and token[1].isalpha() and len(token[1]) > 2)


def _bracketed(inside: str) -> str:
    return rf"\left( {inside} \right)" if r"\frac" in inside or r"\sum" in inside else f"( {inside} )"


def _bare(text: str) -> str:
    """Without brackets around all of it."""
    for opening, closing in ((r"\left( ", r" \right)"), ("( ", " )")):
        if text.startswith(opening) and text.endswith(closing):
            inside, depth = text[len(opening) : -len(closing)], 0
            for one in re.findall(r"[()]", inside):
                depth += 1 if one == "(" else -1
                if depth < 0:
                    return text
            return inside
    return text
