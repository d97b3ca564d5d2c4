# zlib's own tests: of the static, the shared and the 64-bit library.
make -k test 2>&1 | sed -n 's/^\t*\**  *\(zlib.*\) test OK \**$/\1\tpass/p; s/^\t*\**  *\(zlib.*\) test FAILED \**$/\1\tfail/p'
