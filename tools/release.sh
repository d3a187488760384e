#!/usr/bin/env bash
# Builds and checks everything of a release in dist/, and publishes nothing:
#
#   wheel (with the compiled kernel) and source distribution     tools/wheel.sh
#   gantry-VERSION.cdx.json    software bill of materials: CycloneDX, with the vendored files
#   gantry-chart-VERSION.tgz   the Helm chart
#   SHA256SUMS
#
# The wheel is installed with all extras into an empty environment; there a broker gets a message. The
# versions in all files must be equal. `make lint test` is not part of it. DIRTY=1 admits uncommitted changes.
set -euo pipefail
cd "$(dirname "$0")/.."

CYCLONEDX=7.5.0
TWINE=7.0.0
PY=$PWD/.venv/bin/python
UV=$PWD/.venv/bin/uv
WORK=build/release
say() { printf '== %s\n' "$*"; }

if [ -z "${DIRTY:-}" ] && [ -n "$(git status --porcelain)" ]; then
    echo "There are uncommitted changes; DIRTY=1 builds all the same." >&2
    exit 1
fi
rm -rf dist "$WORK"
mkdir -p "$WORK" dist
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH

say "versions and notices"
version=$("$PY" tools/versions.py)
"$PY" tools/notices.py --check

say "wheel and source distribution"
tools/wheel.sh
wheel=$(ls dist/*.whl)
"$UV" tool run -q --from "twine==$TWINE" twine check --strict dist/*.whl dist/*.tar.gz

say "chart and manifests"
tools/setup.sh charts
if [ -x build/charts/bin/python ]; then
    build/charts/bin/python tools/charts.py --write >"$WORK/charts.json"
    git diff --exit-code --stat deploy/kubernetes
fi
tar -czf "dist/gantry-chart-$version.tgz" --owner=0 --group=0 --numeric-owner --sort=name \
    --mtime="@$SOURCE_DATE_EPOCH" --dereference -C deploy/chart gantry

say "installation into an empty environment"
# The versions of the lock file, without the digests: a constraint has none.
sed -E 's/ *\\$//; /^ +--hash/d' requirements.lock >"$WORK/constraints.txt"
"$UV" venv -q -p "$PY" "$WORK/environment"
"$UV" pip install -q -p "$WORK/environment/bin/python" -c "$WORK/constraints.txt" \
    "$wheel[console,spark,compression,speed]"
"$UV" pip check -q -p "$WORK/environment/bin/python"
(cd "$WORK" && environment/bin/python ../../tools/release_check.py "$version")

say "software bill of materials"
bill=dist/gantry-$version.cdx.json
"$UV" tool run -q --from "cyclonedx-bom==$CYCLONEDX" cyclonedx-py environment --pyproject pyproject.toml \
    --mc-type application --output-reproducible --output-format JSON -o "$bill" "$WORK/environment/bin/python"
"$UV" run -q --no-project --with "cyclonedx-bom==$CYCLONEDX" --with "cyclonedx-python-lib[json-validation]" \
    --with click python -m tools.sbom "$bill"

(cd dist && sha256sum -- * >SHA256SUMS)
say "dist/"
ls -l dist
