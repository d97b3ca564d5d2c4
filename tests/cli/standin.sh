# Makes the packages of a registry in directory $1, which is reached at URL $2: `left`, for npm (with an install script),
# pip, Go and Cargo.
set -e
cd "$1"; url=$2
mkdir -p npm/package npm/left/-
script='"scripts":{"install":"sh -c '"'echo installed > installed'"'"}'
echo '{"name":"left","version":"1.0.0","main":"i.js",'"$script"'}' > npm/package/package.json
echo "module.exports = 42" > npm/package/i.js
tar -C npm -czf npm/left/-/left-1.0.0.tgz package
echo '{"name":"left","dist-tags":{"latest":"1.0.0"},"versions":{"1.0.0":{"name":"left","version":"1.0.0","main":"i.js",
"hasInstallScript":true,'"$script"',"dist":{"tarball":"'"$url"'/npm/left/-/left-1.0.0.tgz"}}}}' > npm/left/index
mkdir -p pip/simple/left wheel/left-1.0.dist-info wheel/left
echo "VALUE = 42" > wheel/left/__init__.py
cd wheel
printf 'Metadata-Version: 2.1\nName: left\nVersion: 1.0\n' > left-1.0.dist-info/METADATA
printf 'Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n' > left-1.0.dist-info/WHEEL
printf 'left/__init__.py,,\nleft-1.0.dist-info/METADATA,,\nleft-1.0.dist-info/WHEEL,,\nleft-1.0.dist-info/RECORD,,\n' \
    > left-1.0.dist-info/RECORD
/usr/bin/python3 -m zipfile -c ../pip/left-1.0-py3-none-any.whl left left-1.0.dist-info
cd ..
echo "<a href='$url/pip/left-1.0-py3-none-any.whl'>left-1.0-py3-none-any.whl</a>" > pip/simple/left/index
versions=go/example.org/left/@v; module=zip/example.org/left@v1.0.0
mkdir -p $versions $module
printf 'module example.org/left\n\ngo 1.18\n' | tee $versions/v1.0.0.mod > $module/go.mod
printf 'package left\n\nconst Value = 42\n' > $module/left.go
echo '{"Version":"v1.0.0","Time":"2024-01-01T00:00:00Z"}' | tee go/example.org/left/@latest > $versions/v1.0.0.info
echo v1.0.0 > $versions/list
(cd zip; /usr/bin/python3 -c 'import zipfile
with zipfile.ZipFile("../go/example.org/left/@v/v1.0.0.zip", "w") as z:
    for name in ["go.mod", "left.go"]: z.write("example.org/left@v1.0.0/" + name)')
mkdir -p cargo/le/ft crate/left-1.0.0/src cargo/dl/left/1.0.0
printf '[package]\nname = "left"\nversion = "1.0.0"\nedition = "2021"\n' > crate/left-1.0.0/Cargo.toml
echo 'pub const VALUE: u8 = 42;' > crate/left-1.0.0/src/lib.rs
tar -C crate -czf cargo/dl/left/1.0.0/download left-1.0.0
sum=$(sha256sum cargo/dl/left/1.0.0/download); sum=${sum%% *}
echo '{"name":"left","vers":"1.0.0","deps":[],"cksum":"'$sum'","features":{},"yanked":false}' > cargo/le/ft/left
echo '{"dl":"'$url'/cargo/dl"}' > cargo/config.json
