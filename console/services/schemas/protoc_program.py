"""Program: protoc with limits of memory, CPU time and file size (`compiling.py` starts it).

    python -I protoc_program.py OUTPUT FILE...

The working folder has the files. The compiler is part of `grpcio-tools`, with the files
`google/protobuf/*.proto`.
"""

import resource
import sys
from pathlib import Path
from typing import Final

import grpc_tools
from grpc_tools import protoc

#: Maximum size of the address space, bytes; an empty process has 200 MiB.
MEMORY_BYTES_MAX: Final = 1024 * 1024 * 1024
CPU_S_MAX: Final = 8
#: Maximum size of the descriptor set and of the errors, bytes.
FILE_BYTES_MAX: Final = 4 * 1024 * 1024


def main(output: str, *files: str) -> int:
    for kind, most in (
        (resource.RLIMIT_AS, MEMORY_BYTES_MAX),
        (resource.RLIMIT_CPU, CPU_S_MAX),
        (resource.RLIMIT_FSIZE, FILE_BYTES_MAX),
        (resource.RLIMIT_CORE, 0),
    ):
        _soft, hard = resource.getrlimit(kind)
        limit = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (limit, limit))
    own = Path(grpc_tools.__file__).parent / "_proto"
    folders = ("--proto_path=.", f"--proto_path={own}")
    options = ("--include_imports", f"--descriptor_set_out={output}")
    return int(protoc.main(["protoc", *folders, *options, *files]))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
