//! Sockets in the file system that policy lets domains connect to.

use super::actors::Actors;
use flask::{Class, Question, SecurityServer, Sid, Unreachable, perm};

/// Whether some domain may connect or send to a socket labelled `tsid`.
pub(super) fn connects(
    server: &dyn SecurityServer,
    actors: Actors<'_>,
    tsid: Sid,
) -> Result<bool, Unreachable> {
    let kinds = [
        (Class::UnixStreamSocket, perm::unix_stream_socket::CONNECTTO),
        (Class::UnixDgramSocket, perm::unix_dgram_socket::SENDTO),
    ];
    for &ssid in actors.own.iter().chain(actors.others) {
        for (tclass, needed) in kinds {
            if server.compute_av(Question { ssid, tsid, tclass })?.allowed.contains(needed) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}
