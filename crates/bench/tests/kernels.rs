//! Every kernel replies the same in each of its languages.

use bench::kernels::{Gcc, Implementation, KERNELS, Kernel, LuaJit};

fn reply(by: &dyn Implementation, kernel: &Kernel, request: &[u8]) -> Result<Vec<u8>, String> {
    let mut ready = by.prepare(kernel)?;
    ready.fill(request)?;
    ready.run(1)?;
    ready.reply()
}

#[test]
fn lua_replies_as_c_does() {
    let gcc = &Gcc::all()[0];
    for kernel in &KERNELS {
        for size in [0, 1, 511, 9_747, 101_568] {
            let request = kernel.request(size);
            let want = reply(gcc, kernel, &request).expect("gcc is installed");
            let got = reply(&LuaJit, kernel, &request).expect("luajit is installed");
            assert!(got == want, "{} at {size} bytes", kernel.name);
        }
        // Bytes that end a text early: nothing valid stands behind them.
        let mut request = kernel.request(5000);
        request[3000] = 0xff;
        let want = reply(gcc, kernel, &request);
        assert!(reply(&LuaJit, kernel, &request) == want, "{} on a broken request", kernel.name);
    }
}
