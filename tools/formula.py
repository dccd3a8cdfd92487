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
_OPERATORS = {name: f"\\{name}" for name in ("det", "exp", "log", "max", "min", "sum")}
_OPERATORS |= {"sgn": r"\operatorname{sgn}", "sign": r"\operatorname{sign}", "argmax": r"\operatorname{argmax}"}
_RELATIONS = {"<=": r"\le", ">=": r"\ge", "!=": r"\ne", "=": "=", "+": "+", "-": "-", "<": "<", ">": ">", ",": ",",
              ";": ";", ":": r":", ".": ".", ">>": r"\gg", "*": r"\cdot", "=>": r"\Rightarrow", "+-": r"\pm",
              "+=": r"\mathrel{+}="}  # fmt: skip
_TOKEN = re.compile(
    r"(?P<gap>\s{2,})|(?P<space>\s)|(?P<number>\d+(?:\.\d+)?(?:e-?\d+)?)|(?P<lex>lex max min_[a-z]+)"
    r"|(?P<words>[a-z]{2,}(?:-[a-z]{2,})+(?![\w(]))"
    r"|(?P<name>[A-Za-z]+0?(?:'|\*(?![A-Za-z0-9(]))?(?:_(?:[A-Za-z0-9]+|\([^)]*\)|\{[^}]*\}))?)"
    r"|(?P<mark>=>|\+-|\+=|<=|>=|>>|!=|[-+=<>,;:.^/()\[\]*|])"
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


def inline(text: str) -> str:
    """What stands in a sentence, as TeX, fractions with a stroke.

    Raises
    ------
    NotAFormula
        As `tex`; or it has words in it, which are names of code.
    """
    made = _Row(" ".join(text.split()), small=True).tex()
    if (
        r"\text{" in made
        or re.search(r"\\mathrm\{(?![A-Z]{2}\})", made)
        or re.fullmatch(r"\\mathrm\{\w+\}|- [a-z]", made)
    ):
        raise NotAFormula(f"{text!r} has words")
    return made


class _Row:
    def __init__(self, text: str, small: bool = False) -> None:
        #: Are fractions written with a stroke, as in a sentence?
        self.small = small
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
        #: Does a stroke close what one has opened?
        self.inside = False

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
        small |= self.small
        while self._next()[1] not in (")", "]", "|" if self.inside else "") and self._next()[0] != "end":
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
                out += [] if self._next()[1] == "=" else [r"\quad"]  # before it they align rows of text
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
        elif text == "|":
            self.inside = True
            inside = self._sequence()
            self.inside = False
            if self._next()[1] != "|":
                raise NotAFormula("a stroke is not closed")
            self.at += 1
            made = rf"\left| {inside} \right|"
        elif kind == "number":
            digits, _, power = text.partition("e")
            made = digits if not power else f"10^{{{power}}}" if digits == "1" else rf"{digits} \cdot 10^{{{power}}}"
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
                    sign = "-" if self._next()[1] == "-" else ""
                    self.at += len(sign)
                    made += f"^{{{sign}{self._factor()}}}"
            elif mark == "[":
                made += f"_{{{self._closed(']').replace(' ', '')}}}"
            else:
                inside = _bracketed(self._closed(")"))
                made += (r"\!" if inside.startswith(r"\left") else "") + inside  # brackets that grow stand apart
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
        plain = index.strip("()")
        below = rf"_{{\mathrm{{{plain}}}}}" if len(plain) > 2 else f"_{{{plain}}}" if plain else ""
        below = f"_{{{_SYMBOL[plain]}}}" if plain in _SYMBOL else below
        if index.startswith("{"):
            below = f"_{{{_Row(index.strip('{}'), self.small).tex()}}}"
        if name in _OPERATORS and (len(index) < 2 or index.startswith("{")):
            return _OPERATORS[name] + below
        name, mark = name.rstrip("'*"), name[len(name.rstrip("'*")) :].replace("*", "^*")
        if name in _SYMBOL:
            return _SYMBOL[name] + mark + below
        if name.endswith("0") and name[:-1] in _SYMBOL:
            return f"{_SYMBOL[name[:-1]]}^{{0}}{below}"
        if len(name) == 1:
            return name + mark + below
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
