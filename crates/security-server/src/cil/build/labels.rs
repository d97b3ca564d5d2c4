//! Labelling rules.

use super::statements::{LiveStatement, Statements};
use super::{Binding, Builder, Container, Failure, Item, Node, Report, Space, Word, kw};
use crate::policy::{
    Context, DeviceLabel, FileLabel, FsUse, FsUseKind, Genfs, Netif, NodeLabel, PortLabel,
};
use flask::{FileKind, Protocol};
use std::net::IpAddr;

/// The statements about devices that only some platforms have.
const DEVICES: [(Word, &str); 7] = [
    (kw::IBPKEYCON, "ibpkeycon"),
    (kw::IBENDPORTCON, "ibendportcon"),
    (kw::IOMEMCON, "iomemcon"),
    (kw::IOPORTCON, "ioportcon"),
    (kw::PCIDEVICECON, "pcidevicecon"),
    (kw::PIRQCON, "pirqcon"),
    (kw::DEVICETREECON, "devicetreecon"),
];

/// Bytes that a labelling rule takes beside its texts, with the range of its context.
const LABEL_BYTES: usize = 256;

impl Builder<'_> {
    /// Reads labelling rules.
    pub(super) fn labels(&mut self, statements: &Statements, report: &mut Report) {
        self.each(statements, &[kw::SIDCONTEXT], report, Self::sid_context);
        self.each(statements, &[kw::CONTEXT], report, Self::named_context);
        self.each(statements, &[kw::FILECON], report, Self::filecon);
        self.each(statements, &[kw::PORTCON], report, Self::portcon);
        self.each(statements, &[kw::NODECON], report, Self::nodecon);
        self.each(statements, &[kw::NETIFCON], report, Self::netifcon);
        self.each(statements, &[kw::GENFSCON], report, Self::genfscon);
        self.each(statements, &[kw::FSUSE], report, Self::fsuse);
        self.each(statements, &DEVICES.map(|device| device.0), report, Self::device);
    }

    fn sid_context(&mut self, s: &LiveStatement) -> Result<(), Failure> {
        let [sid, context] = self.args(s)?;
        let sid = self.number(s.at, Space::Sid, sid)? as usize;
        let context = self.context(s.at, context)?;
        let slot = self.policy.initial_sids.get_index_mut(sid).map(|(_, slot)| slot);
        match slot {
            Some(slot @ None) => *slot = Some(context),
            Some(Some(known)) if *known == context => {}
            _ => {
                let message = "the initial SID has another context already".to_owned();
                return Err(Failure::wrong(s.node, message, "remove one `sidcontext`"));
            }
        }
        Ok(())
    }

    fn named_context(&mut self, s: &LiveStatement) -> Result<(), Failure> {
        let [_, value] = self.args(s)?;
        self.context(s.at, value).map(drop)
    }

    fn filecon(&mut self, s: &LiveStatement) -> Result<(), Failure> {
        let [path, kind, context] = self.args(s)?;
        let path = self.label_text(s.at, path)?;
        let kind = file_kind(kind)?;
        let none = matches!(context.item, Item::List { .. }) && self.tree.list(context).is_empty();
        let context = if none { None } else { Some(self.context(s.at, context)?) };
        self.policy.labels.files.push(FileLabel { path, kind, context });
        Ok(())
    }

    /// The text that a labelling rule keeps; who labels by it, and who is told of it, have one more
    /// each.
    fn label_text(&self, at: Container, node: Node) -> Result<Box<str>, Failure> {
        let text = self.text_or_param(at, node)?;
        self.spend_bytes(node, LABEL_BYTES + 4 * text.len())?;
        Ok(text.into())
    }

    fn portcon(&mut self, s: &LiveStatement) -> Result<(), Failure> {
        let [protocol, ports, context] = self.args(s)?;
        let protocol = match protocol.item {
            Item::Word(kw::TCP) => Protocol::Tcp,
            Item::Word(kw::UDP) => Protocol::Udp,
            Item::Word(kw::DCCP) => Protocol::Dccp,
            Item::Word(kw::SCTP) => Protocol::Sctp,
            _ => return Err(super::expected(protocol, "protocol, as in `tcp`")),
        };
        let ports = self.port_range(ports)?;
        let context = self.context(s.at, context)?;
        self.spend_bytes(s.node, LABEL_BYTES)?;
        self.policy.labels.ports.push(PortLabel { protocol, ports, context });
        Ok(())
    }

    fn port_range(&self, node: Node) -> Result<(u16, u16), Failure> {
        let number = |node: Node| {
            let text = self.text(node)?;
            text.parse::<u16>().map_err(|_| {
                let message = format!("`{text}` is not a port");
                Failure::wrong(node, message, "a port is a number from 0 to 65535")
            })
        };
        let (low, high) = match *self.tree.list(node) {
            [low, high] => (number(low)?, number(high)?),
            _ => (number(node)?, number(node)?),
        };
        if low > high {
            let message = "the first port is greater than the last".to_owned();
            return Err(Failure::wrong(node, message, "exchange them"));
        }
        Ok((low, high))
    }

    fn nodecon(&mut self, s: &LiveStatement) -> Result<(), Failure> {
        let [address_node, mask_node, context] = self.args(s)?;
        let address = self.address(s.at, address_node)?;
        let mask = self.address(s.at, mask_node)?;
        if address.is_ipv4() != mask.is_ipv4() {
            let message = "address and mask are of different families".to_owned();
            return Err(Failure::wrong(s.node, message, "write both as IPv4 or both as IPv6"));
        }
        let context = self.context(s.at, context)?;
        self.spend_bytes(s.node, LABEL_BYTES)?;
        self.policy.labels.nodes.push(NodeLabel { address, mask, context });
        Ok(())
    }

    /// The address that a name, an address or `(address)` stands for.
    fn address(&self, at: Container, node: Node) -> Result<IpAddr, Failure> {
        let parse = |node: Node| {
            let text = self.text(node)?;
            text.parse().map_err(|_| {
                let message = format!("`{text}` is not an IP address");
                Failure::wrong(node, message, "write it as 192.0.2.1 or 2001:db8::1")
            })
        };
        if let [inner] = *self.tree.list(node) {
            return parse(inner);
        }
        let Item::Word(word) = node.item else { return parse(node) };
        let text = self.tree.text(word);
        if text.contains(':') || text.starts_with(|c: char| c.is_ascii_digit()) {
            return parse(node);
        }
        match self.find(at, Space::IpAddr, node)? {
            Binding::Symbol(id) => match *self.tree.list(self.scopes.symbol(id).node) {
                [_, _, value] => match *self.tree.list(value) {
                    [inner] => parse(inner),
                    _ => parse(value),
                },
                _ => Err(super::expected(node, "address")),
            },
            Binding::Unnamed(node, at) => self.address(at, node),
            Binding::Text(word) => parse(Node { item: Item::Word(word), ..node }),
        }
    }

    fn netifcon(&mut self, s: &LiveStatement) -> Result<(), Failure> {
        let [name, interface, packets] = self.args(s)?;
        let name = self.label_text(s.at, name)?;
        let interface = self.context(s.at, interface)?;
        let packets = self.context(s.at, packets)?;
        self.policy.labels.netifs.push(Netif { name, interface, packets });
        Ok(())
    }

    fn genfscon(&mut self, s: &LiveStatement) -> Result<(), Failure> {
        let (filesystem, path, kind, context) = match *self.rest(s) {
            [filesystem, path, context] => (filesystem, path, FileKind::Any, context),
            [filesystem, path, kind, context] => (filesystem, path, file_kind(kind)?, context),
            _ => return Err(self.misuse(s)),
        };
        let filesystem = self.label_text(s.at, filesystem)?;
        let path = self.label_text(s.at, path)?;
        let context = self.context(s.at, context)?;
        self.policy.labels.genfs.push(Genfs { filesystem, path, kind, context });
        Ok(())
    }

    fn fsuse(&mut self, s: &LiveStatement) -> Result<(), Failure> {
        let [kind, filesystem, context] = self.args(s)?;
        let kind = match kind.item {
            Item::Word(kw::XATTR) => FsUseKind::Xattr,
            Item::Word(kw::TASK) => FsUseKind::Task,
            Item::Word(kw::TRANS) => FsUseKind::Trans,
            _ => return Err(self.misuse(s)),
        };
        let filesystem = self.label_text(s.at, filesystem)?;
        let context = self.context(s.at, context)?;
        self.policy.labels.fs_uses.push(FsUse { kind, filesystem, context });
        Ok(())
    }

    fn device(&mut self, s: &LiveStatement) -> Result<(), Failure> {
        let [device @ .., context] = self.rest(s) else { return Err(self.misuse(s)) };
        if device.is_empty() {
            return Err(self.misuse(s));
        }
        let words = device.iter().map(|node| self.tree.sources.snippet(node.offset));
        let words: Vec<&str> = words.collect();
        let count = words.iter().map(|word| word.len() + 1).sum::<usize>();
        self.spend_bytes(s.node, LABEL_BYTES + count)?;
        let device = words.join(" ").into();
        let keyword = self.keyword(s);
        let known = DEVICES.iter().find(|entry| entry.0 == keyword);
        let keyword = known.map_or("", |entry| entry.1);
        let context: Context = self.context(s.at, *context)?;
        self.policy.labels.devices.push(DeviceLabel { keyword, device, context });
        Ok(())
    }
}

fn file_kind(node: Node) -> Result<FileKind, Failure> {
    Ok(match node.item {
        Item::Word(kw::FILE) => FileKind::File,
        Item::Word(kw::DIR) => FileKind::Dir,
        Item::Word(kw::CHAR) => FileKind::Char,
        Item::Word(kw::BLOCK) => FileKind::Block,
        Item::Word(kw::SOCKET) => FileKind::Socket,
        Item::Word(kw::PIPE) => FileKind::Pipe,
        Item::Word(kw::SYMLINK) => FileKind::Symlink,
        Item::Word(kw::ANY) => FileKind::Any,
        _ => {
            let message = "this is not a kind of file".to_owned();
            let help = "write `any`, `file`, `dir`, `char`, `block`, `socket`, `pipe` or `symlink`";
            return Err(Failure::wrong(node, message, help));
        }
    })
}
