"""Compilation of Protobuf sources: imports, errors with their lines, hostile uploads."""

import io
import zipfile
from pathlib import Path

import pytest

from console.gateway.messages.schemas.bounds import SchemaError
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


def test_a_compiler_without_end_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "COMPILE_S", 0.0)
    assert "took more than" in refused(MONEY.encode())


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
