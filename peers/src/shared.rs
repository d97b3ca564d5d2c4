//! iceoryx2: shared memory, looked at again and again; it gives the processor away when nothing
//! comes.

use crate::{Outcome, on_demand, ready};
use iceoryx2::{
    port::{client::Client, server::Server},
    prelude::*,
};
use std::{hint::spin_loop, path::Path, thread::yield_now};

/// The longest message.
const MOST: usize = 64 << 10;
/// Looks before the processor is given away.
const LOOKS: u32 = 4000;

type Bytes = [u8];
type Service = ipc::Service;

fn node() -> Outcome<Node<Service>> {
    set_log_level(LogLevel::Error);
    Ok(NodeBuilder::new().create::<Service>()?)
}

fn name(place: &Path) -> Outcome<ServiceName> {
    Ok(place.display().to_string().as_str().try_into()?)
}

pub(crate) fn serve(place: &Path) -> Outcome {
    let node = node()?;
    let builder = node.service_builder(&name(place)?).request_response::<Bytes, Bytes>();
    let service = builder.open_or_create()?;
    let server: Server<Service, Bytes, (), Bytes, ()> =
        service.server_builder().initial_max_slice_len(MOST).create()?;
    ready()?;
    let mut looks = 0;
    loop {
        let Some(request) = server.receive()? else {
            wait(&mut looks);
            continue;
        };
        looks = 0;
        let payload = request.payload();
        request.loan_slice_uninit(payload.len())?.write_from_slice(payload).send()?;
    }
}

pub(crate) fn call(place: &Path) -> Outcome {
    let node = node()?;
    let builder = node.service_builder(&name(place)?).request_response::<Bytes, Bytes>();
    let service = builder.open_or_create()?;
    let client: Client<Service, Bytes, (), Bytes, ()> =
        service.client_builder().initial_max_slice_len(MOST).create()?;
    on_demand(|message| {
        let request = client.loan_slice_uninit(message.len())?.write_from_slice(message);
        let pending = request.send()?;
        let mut looks = 0;
        loop {
            if let Some(reply) = pending.receive()? {
                return Ok(reply.payload().len());
            }
            wait(&mut looks);
        }
    })
}

fn wait(looks: &mut u32) {
    *looks += 1;
    if *looks < LOOKS { spin_loop() } else { yield_now() }
}
