# Kernels as Debian has them, below the directory $1: the newest of each kind, and the oldest 6.1 that is still offered.
set -euo pipefail
mkdir -p "$1"
cd "$1"
newest() { apt-cache depends "$1" 2>/dev/null | sed -n 's/^ *Depends: \(linux-image-[0-9].*\)/\1/p' | head -1; }
oldest=$(apt-cache pkgnames linux-image-6.1.0- | grep -x 'linux-image-6\.1\.0-[0-9]*-amd64' | sort -V | head -1)
for package in "$oldest" $(for kind in amd64 cloud-amd64 rt-amd64 6.12-amd64; do newest "linux-image-$kind"; done); do
    release=${package#linux-image-}
    [ -e "vmlinuz-$release" ] && continue
    apt-get download -q "$package" >&2
    dpkg-deb --fsys-tarfile "$package"_*.deb | tar -x --strip-components=2 "./boot/vmlinuz-$release"
    rm "$package"_*.deb
done
