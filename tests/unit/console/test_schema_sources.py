"""Compilation of Protobuf sources: imports, errors with their lines, hostile uploads."""

import io
import os
import struct
import tracemalloc
import zipfile
from pathlib import Path
from random import Random

import pytest

from console.gateway.messages.schemas.bounds import SCHEMA_BYTES_MAX, SchemaError
from console.gateway.messages.schemas.protobuf import FILES_MAX, ProtobufSchema
from console.services.schemas import compiling
from console.services.schemas.compiling import compiled

ORDER = """syntax = "proto3";
package shop.v1;
import "google/protobuf/timestamp.proto";
import "shop/v1/money.proto";
message Order {
  int64 id = 1;
  Money total = 2;
  google.protobuf.Timestamp at = 3;
}
"""
MONEY = 'syntax = "proto3"; package shop.v1; message Money { int64 cents = 1; }'


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine starts the compiler slowly."""
    monkeypatch.setattr(compiling, "COMPILE_S", 120.0)


def archive(**files: str) -> bytes:
    """A ZIP archive; `__` in a name stands for `/`."""
    return packed({name.replace("__", "/") + ".proto": text for name, text in files.items()})


def packed(files: dict[str, str], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as writer:
        for name, text in files.items():
            writer.writestr(name, text)
    return buffer.getvalue()


def refused(content: bytes) -> str:
    with pytest.raises(SchemaError) as fault:
        compiled(content)
    return str(fault.value)


def test_an_archive_whose_files_import_each_other_and_googles_files() -> None:
    files = {"shop/v1/order.proto": ORDER, "shop/v1/money.proto": MONEY, "README.md": "no source"}
    types = ProtobufSchema(compiled(packed(files))).types
    assert types == ("google.protobuf.Timestamp", "shop.v1.Money", "shop.v1.Order")


def test_errors_name_file_line_and_column() -> None:
    text = refused(b'syntax = "proto3";\nmessage Order {\n  Absent total = 1;\n}\n')
    assert text == 'schema.proto:3:3: "Absent" is not defined.'
    text = refused(archive(a='syntax = "proto3";\nimport "b.proto";', b="message B { int32 }"))
    assert "b.proto:1:" in text
    text = refused(ORDER.encode())
    assert "shop/v1/money.proto: File not found." in text
    assert 'schema.proto:4:1: Import "shop/v1/money.proto" was not found' in text


@pytest.mark.parametrize("path", ["/etc/hostname", "../descriptors", "./schema.proto", "errors"])
def test_an_import_reads_no_file_beside_the_upload(path: str) -> None:
    text = refused(f'syntax = "proto3";\nimport "{path}";\nmessage A {{}}\n'.encode())
    assert f'schema.proto:2:1: Import "{path}" was not found' in text


def test_hostile_sources_are_refused() -> None:
    nested = b'syntax = "proto3";' + b"message A {" * 2_000 + b"}" * 2_000
    assert "recursion limit" in refused(nested)
    assert "schema.proto:" in refused(b"\xff\x00" * 500)
    errors = refused(b"x;\n" * 500).splitlines()
    assert len(errors) == compiling.ERRORS_MAX
    loop = archive(a='syntax = "proto3"; import "b.proto";', b='import "a.proto";')
    assert "recursively imports itself" in refused(loop)


@pytest.mark.parametrize(
    "path",
    ["../a.proto", "/a.proto", "a/../../b.proto", "-I.proto", "@a.proto", "a\\b.proto", ".proto"],
)
def test_unusable_paths_of_an_archive(path: str) -> None:
    assert "unusable path" in refused(packed({path: MONEY}))


def test_unusable_archives() -> None:
    assert "0 .proto files" in refused(packed({"a.txt": ""}))
    assert "not a ZIP archive" in refused(archive(a=MONEY)[:-30])
    assert "unknown compression" in refused(packed({"a.proto": MONEY}, zipfile.ZIP_LZMA))
    assert "bytes" in refused(archive(a="/" * (compiling.SOURCE_BYTES_MAX + 1)))
    many = {f"a{number}.proto": "" for number in range(FILES_MAX + 1)}
    assert f"{len(many)} .proto files" in refused(packed(many))
    assert "a.proto/b.proto: " in refused(packed({"a.proto": MONEY, "a.proto/b.proto": MONEY}))


def test_a_bomb_is_not_unpacked() -> None:
    """64 MiB of zeros are 64 KiB in the archive."""
    bomb = packed({"a.proto": "\x00" * (64 * 1024 * 1024)})
    assert len(bomb) < SCHEMA_BYTES_MAX
    tracemalloc.start()
    try:
        assert "bytes" in refused(bomb)
        _now, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 6 * compiling.SOURCE_BYTES_MAX


def test_archives_with_many_members() -> None:
    several = {f"{number}.txt": "" for number in range(5_000)}
    assert "0 .proto files" in refused(packed(several))
    assert ProtobufSchema(compiled(packed({**several, "a.proto": MONEY}))).types
    sources = {f"{number}.proto": "" for number in range(5_000)}
    assert "5000 .proto files" in refused(packed(sources))
    assert "0 .proto files" in refused(packed({}))


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_path_in_an_archive_twice() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as writer:
        for text in (MONEY, ORDER):
            writer.writestr("a.proto", text)
    assert refused(buffer.getvalue()) == "a.proto: 2 files of the archive have this path"


def test_an_archive_whose_directory_points_past_every_file() -> None:
    """An offset of 2^64 - 1, which the format can express."""
    name, extra = b"a.proto", struct.pack("<HHQ", 1, 8, 2**64 - 1)
    fields = (45, 3, 45, 0, 0, 0, 0, 33, 0, 1, 1, len(name), len(extra), 0, 0, 0, 0, 2**32 - 1)
    entry = struct.pack("<4s4B4HL2L5H2L", b"PK\x01\x02", *fields) + name + extra
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 1, 1, len(entry), 0, 0)
    assert refused(entry + end).startswith("a.proto: ")


def test_damaged_archives_are_refused_or_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "_descriptor_set", lambda _folder, _files: b"")
    whole = packed({"a.proto": MONEY, "b/c.proto": ORDER})
    random = Random(20)
    refusals = 0
    for _round in range(2_000):
        damaged = bytearray(whole)
        for _byte in range(random.randint(1, 4)):
            damaged[random.randrange(2, len(damaged))] = random.randrange(256)
        try:
            compiled(bytes(damaged[: random.choice((None, random.randrange(4, len(whole))))]))
        except SchemaError:
            refusals += 1
    assert 500 < refusals < 2_000


def test_cycles_and_chains_of_imports() -> None:
    def importing(*names: str) -> str:
        return 'syntax = "proto3";' + "".join(f'import "{name}.proto";' for name in names)

    ring = archive(a=importing("b"), b=importing("c"), c=importing("a"))
    assert "recursively imports itself: a.proto -> b.proto -> c.proto -> a.proto" in refused(ring)
    assert "recursively imports itself" in refused(archive(a=importing("a")))
    last = FILES_MAX - 1
    chain = {f"a{number}": importing(f"a{number + 1}") for number in range(last)}
    compiled(archive(**chain, **{f"a{last}": MONEY}))


@pytest.mark.parametrize(
    "source",
    [
        b'syntax = "proto2"; message A { optional string a = 1 [default = "\xff\xfe"]; }',
        b'syntax = "proto2"; message A { optional string a = 1 [default = "\\377"]; }',
        b'syntax = "proto3"; message A { string a = 1 [json_name = "\xff"]; }',
        b'syntax = "proto3"; package \xff; message A {}',
        b'syntax = "proto3"; // \xff\n message A {}',
        b"\xef\xbb\xbf" + MONEY.encode(),
        MONEY.encode("utf-16"),
    ],
)
def test_text_that_is_no_utf_8_is_refused_or_compiled(source: bytes) -> None:
    try:
        told = " ".join(ProtobufSchema(compiled(source)).types)
    except SchemaError as fault:
        told = str(fault)
    assert told.encode()


def test_a_name_in_an_archive_that_is_no_utf_8() -> None:
    text = packed({"é.proto": MONEY}).replace("é".encode(), b"\xff\xff")
    assert "not a ZIP archive" in refused(text)


def test_a_compiler_without_end_is_stopped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(compiling, "COMPILE_S", 0.0)
    assert "took more than" in refused(MONEY.encode())
    program, noted = tmp_path / "program.py", tmp_path / "pid"
    monkeypatch.setattr(compiling, "PROGRAM", program)
    lines = ("import os", "import pathlib", f"note = pathlib.Path({str(noted)!r})")
    write = ("note.write_text(str(os.getpid()))", "while True: pass")
    program.write_text("\n".join((*lines, *write)))
    for wait_s in (0.5, 2.0, 20.0, 120.0):  # until the program has begun
        monkeypatch.setattr(compiling, "COMPILE_S", wait_s)
        assert "took more than" in refused(MONEY.encode())
        if noted.exists() and noted.read_text():
            break
    with pytest.raises(ProcessLookupError):
        os.kill(int(noted.read_text()), 0)


def test_the_compiler_has_no_environment_and_its_signal_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "program.py"
    monkeypatch.setattr(compiling, "PROGRAM", program)
    monkeypatch.setenv("GANTRY_ADMIN_PASSWORD", "a secret")
    program.write_text("import os, sys\nsys.exit(repr(sorted(os.environ)))")
    assert "GANTRY" not in refused(MONEY.encode())
    program.write_text("import os\nos.kill(os.getpid(), 9)")
    assert refused(MONEY.encode()) == "the compiler ended with SIGKILL"
