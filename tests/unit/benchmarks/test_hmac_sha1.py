"""The load generator's HMAC-SHA1, with and without the SHA instructions of the processor."""

import hmac
import shutil
import subprocess
from hashlib import sha1
from pathlib import Path

import pytest

HEADERS = Path(__file__).resolve().parents[3] / "benchmarks"
KEY = b"bench-secret-key"
LENGTHS = 300
#: Prints the digest of the first n bytes 0, 1, 2, … for each n.
PROGRAM = """
#include <stdio.h>
#include "hmac_sha1.h"
int main(void) {
    uint8_t secret[SHA1_BLOCK] = "bench-secret-key", bytes[300], digest[SHA1_BYTES];
    struct hmac_key key;
    hmac_prepare(&key, secret);
    for (int n = 0; n < 300; n++) {
        hmac(&key, bytes, n, digest);
        for (int i = 0; i < SHA1_BYTES; i++) printf("%02x", digest[i]);
        puts("");
        bytes[n] = n;
    }
}
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
@pytest.mark.parametrize("options", [(), ("-DSHA1_PLAIN",)])
def test_digests_are_those_of_the_standard_library(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    source, program = tmp_path / "digests.c", tmp_path / "digests"
    source.write_text(PROGRAM)
    command = ["cc", "-O2", f"-I{HEADERS}", *options, "-o", str(program), str(source)]
    subprocess.run(command, check=True, capture_output=True)
    printed = subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout
    content = bytes(each % 256 for each in range(LENGTHS))
    expected = [hmac.new(KEY, content[:n], sha1).hexdigest() for n in range(LENGTHS)]
    assert printed.split() == expected
