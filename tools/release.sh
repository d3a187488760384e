#!/usr/bin/env bash
# Builds and checks everything of a release in dist/, and publishes nothing:
#
#   wheels (with the compiled kernel) and source distribution    tools/wheel.sh all
#   gantry-VERSION.cdx.json    software bill of materials: CycloneDX, with the vendored files
#   gantry-chart-VERSION.tgz   the Helm chart
#   SHA256SUMS
#
# Each wheel is installed with all extras into an empty environment of its Python; there the README's message is sent,
# with nothing but the environment on the PATH. The versions in all files must be equal. `make lint test` is not part of
# it. DIRTY=1 admits uncommitted changes, PARTIAL=1 a Python without a wheel.
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

say "wheels and source distribution"
tools/wheel.sh all
for wheel in dist/*.whl; do
    case $wheel in
        *manylinux*) ;;
        *) echo "$wheel fits no other machine: auditwheel could not be used." >&2; exit 1 ;;
    esac
done
"$UV" tool run -q --from "twine==$TWINE" twine check --strict dist/*.whl dist/*.tar.gz

say "chart and manifests"
tools/setup.sh charts
if [ -x build/charts/bin/python ]; then
    build/charts/bin/python tools/charts.py --write >"$WORK/charts.json"
    git diff --exit-code --stat deploy/kubernetes
fi
tar -czf "dist/gantry-chart-$version.tgz" --owner=0 --group=0 --numeric-owner --sort=name \
    --mtime="@$SOURCE_DATE_EPOCH" --dereference -C deploy/chart gantry

# The versions of the lock file, without the digests: a constraint has none.
sed -E 's/ *\\$//; /^ +--hash/d' requirements.lock >"$WORK/constraints.txt"
own=$("$PY" -c 'import sys; print("cp%d%d" % sys.version_info[:2])')
for wheel in dist/*.whl; do
    tag=$(basename "$wheel" | cut -d- -f3)
    say "installation of the wheel $tag into an empty environment"
    python=$PY
    if [ "$tag" != "$own" ]; then python=build/wheel/environment-3.${tag#cp3}/bin/python; fi
    environment=$WORK/environment-$tag
    "$UV" venv -q -p "$python" "$environment"
    # Only PySpark has no wheel; its source distribution needs no compiler.
    CC=/nonexistent/cc "$UV" pip install -q -p "$environment/bin/python" -c "$WORK/constraints.txt" --only-binary :all: \
        --no-binary pyspark "$wheel[console,spark,compression,speed]"
    "$UV" pip check -q -p "$environment/bin/python"
    (cd "$WORK" && PATH=$PWD/environment-$tag/bin "environment-$tag/bin/python" ../../tools/release_check.py "$version")
done

say "software bill of materials"
bill=dist/gantry-$version.cdx.json
"$UV" tool run -q --from "cyclonedx-bom==$CYCLONEDX" cyclonedx-py environment --pyproject pyproject.toml \
    --mc-type application --output-reproducible --output-format JSON -o "$bill" "$WORK/environment-$own/bin/python"
"$UV" run -q --no-project --with "cyclonedx-bom==$CYCLONEDX" --with "cyclonedx-python-lib[json-validation]" \
    --with click python -m tools.sbom "$bill"

(cd dist && sha256sum -- * >SHA256SUMS)
say "dist/"
ls -l dist
