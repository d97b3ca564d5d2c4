# The sources of Lua, zlib and SQLite as Debian has them, below the directory $1, each in a directory of its own, where every
# file compiles by itself.
set -euo pipefail
mkdir -p "$1/work/lists/partial" "$1/work/cache/archives/partial"
cd "$1/work"
root=$PWD
code=$(. /etc/os-release && echo "$VERSION_CODENAME")
# The machine's own lists may lack sources, and are left as they are.
echo "deb-src http://deb.debian.org/debian $code main" > sources.list
apt() {
    apt-get -q -o "Dir::Etc::sourcelist=$root/sources.list" -o Dir::Etc::sourceparts=- -o "Dir::State::lists=$root/lists" \
        -o "Dir::Cache=$root/cache" -o APT::Sandbox::User= "$@" >&2
}
apt update
apt source --download-only lua5.4 zlib sqlite3
for archive in lua5.4_*.orig.tar.* zlib_*.orig.tar.* sqlite3_*.orig.tar.*; do
    mkdir -p "tree-${archive%%_*}"
    tar -x --strip-components=1 -C "tree-${archive%%_*}" -f "$archive"
done
# SQLite makes some of its sources from others.
(cd tree-sqlite3 && ./configure --disable-shared && make .target_source) >&2
mkdir -p ../lua ../zlib ../sqlite
cp tree-lua5.4/src/*.[ch] ../lua
cp tree-zlib/*.[ch] ../zlib
cp tree-sqlite3/tsrc/*.[ch] ../sqlite
# The one is part of another file, the other needs Tcl.
rm -f ../sqlite/geopoly.c ../sqlite/tclsqlite.c
cd .. && rm -r work
