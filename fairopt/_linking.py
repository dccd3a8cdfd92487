"""Machine code of loops is made once: a loop refers to the larger ones that it calls, and holds copies of small ones.

numba copies whatever a function calls into it, and the compiler works through all of it again at every level. Here the
code of a large loop stays in its own file, and those that call it find it by its name, which follows from its content.
"""

from __future__ import annotations

from typing import Any

from llvmlite import binding as llvm
from numba.core import codegen, compiler

#: A loop of more instructions is not copied: the compiler would hardly write it into its callers.
SMALL = 100


class Library(codegen.JITCodeLibrary):  # type: ignore[misc]
    """The machine code of one loop for one signature.

    `apart` are the libraries of the large loops that it refers to: they have to be there before it is, and as long.
    """

    def __init__(self, made_by: Any, name: str) -> None:
        super().__init__(made_by, name)
        self.enable_object_caching()
        self.loop, self.signature, self.large = "", None, False
        self._linking_libraries: list[Any] = []
        self.apart: list[Library] = []
        #: What it defines, and what of others it refers to.
        self.symbols: set[str] = set()
        self.refers: set[str] = set()

    def finalize(self) -> None:
        """Link copies of small loops only."""
        called = list(dict.fromkeys(self._linking_libraries))
        loops = [one for one in called if isinstance(one, Library)]
        far = [one for one in loops if one.large]
        self.apart = list(dict.fromkeys([*far, *(other for one in loops if not one.large for other in one.apart)]))
        self._linking_libraries = [one for one in called if one not in far]
        super().finalize()
        self.large = _longer(self._final_module, SMALL)
        named = [*self._final_module.functions, *self._final_module.global_variables]
        self.symbols = {one.name for one in named if not one.is_declaration}
        self.refers = {one.name for one in named} & {name for one in self.apart for name in one.symbols}
        self.refers -= self.symbols

    def kept(self) -> tuple[Any, ...]:
        """What a file holds of it."""
        copied = b"" if self.large else self._get_module_for_linking().as_bitcode()
        return self.name, self._get_compiled_object(), copied, self.symbols, self.refers

    @classmethod
    def loaded(cls, made_by: Any, kept: tuple[Any, ...], apart: list[Library]) -> Library:
        """The library that a file held; LookupError where something that it refers to is not there."""
        name, code, copied, symbols, refers = kept
        if missing := refers.difference(*(one.symbols for one in apart)):  # the linker would end the process
            raise LookupError(f"{name} refers to {missing}")
        self = cls(made_by, name)
        self.apart, self.large, self.symbols, self.refers = apart, not copied, symbols, refers
        self._set_compiled_object(code)
        if copied:
            self._shared_module = llvm.parse_bitcode(copied)
        self._finalize_final_module()
        made_by._engine._defined_symbols |= symbols
        return self


def _longer(module: Any, most: int) -> bool:
    """Are there more instructions, but for those that hand over values to and from Python?"""
    count = 0
    for function in module.functions:
        if not function.is_declaration and not function.name.startswith("_ZN7cpython"):
            for block in function.blocks:
                count += sum(1 for _ in block.instructions)
                if count > most:
                    return True
    return False


class _Steps(compiler.Compiler):  # type: ignore[misc]
    """numba's steps from a function to a `Library`; its names are the same in every process."""

    content = ""

    def _compile_bytecode(self) -> Any:
        state = self.state
        state.func_id.unique_id = int(self.content, 16)
        state.library = Library(state.targetctx.codegen(), state.func_id.func_qualname)
        return super()._compile_bytecode()


def steps(content: str) -> type[_Steps]:
    """The steps for a loop of this content."""
    return type("Steps", (_Steps,), {"content": content})


def reduced(result: Any) -> tuple[Any, ...]:
    """What a file holds of a compiled loop, after the loops that have to be there before it."""
    description = result.fndesc
    description.typemap = description.calltypes = None  # they are not needed, and may not be pickled
    environments = tuple(result._find_referenced_environments())
    apart = [(one.loop, one.signature) for one in result.library.apart]
    kept = result.library.kept()
    return apart, (kept, description, result.environment, result.signature, result.reload_init, environments)


def rebuilt(target: Any, data: tuple[Any, ...], apart: list[Library]) -> Any:
    """The compiled loop of `reduced`."""
    kept, description, environment, signature, reload_init, environments = data
    for function in reload_init:
        function()
    library = Library.loaded(target.codegen(), kept, apart)
    entry = target.get_executable(library, description, environment)
    for one in environments:
        library.codegen.set_env(one.env_name, one)
    return compiler.compile_result(
        target_context=target, typing_context=target.typing_context, library=library, environment=environment,
        entry_point=entry, fndesc=description, signature=signature, objectmode=False, lifted=(), typing_error=None,
        type_annotation="", call_helper=None, metadata=None, reload_init=reload_init, referenced_envs=environments,
    )  # fmt: skip
