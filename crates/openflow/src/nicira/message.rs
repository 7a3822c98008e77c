//! Nicira's messages, inside a vendor message of OpenFlow 1.0 or an experimenter message of 1.3.

use super::flow::{FlowMod, FlowRemoved, PacketIn};
use super::{in_message, BAD_SUBTYPE, NICIRA};
use crate::error::{Fault, Refusal};
use crate::layout::{closed_enum, record};
use crate::v10;
use crate::v13::{Experimenter, ReasonMasks};
use crate::wire::{pad, Reader, Wire};

closed_enum! {
    /// Role of a controller.
    pub enum Role: u32, BAD_SUBTYPE, "the role", "0 (other), 1 (master) or 2 (slave)" {
        Other = 0 "NX_ROLE_OTHER", Master = 1 "NX_ROLE_MASTER", Slave = 2 "NX_ROLE_SLAVE",
    }
}

closed_enum! {
    /// The format in which flows are told of from now on.
    pub enum FlowFormat: u32, BAD_SUBTYPE, "the flow format", "0 (OpenFlow 1.0) or 2 (NXM)" {
        OpenFlow10 = 0 "NXFF_OPENFLOW10", Nxm = 2 "NXFF_NXM",
    }
}

closed_enum! {
    /// The format in which packet-ins are sent from now on.
    pub enum PacketInFormat: u32, BAD_SUBTYPE, "the packet-in format", "0 (the version's own) or 1 (NXM)" {
        Standard = 0 "NXPIF_STANDARD", Nxm = 1 "NXPIF_NXT_PACKET_IN",
    }
}

record! {
    /// `NXT_SET_ASYNC_CONFIG`: which messages are sent unasked.
    pub struct AsyncConfig {
        /// Packet-ins, by their reason.
        pub packet_in: ReasonMasks;
        /// Port status, by its reason.
        pub port_status: ReasonMasks;
        /// Flow-removed, by its reason.
        pub flow_removed: ReasonMasks;
    }
}

/// A message of Nicira.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(any(test, feature = "arbitrary"), derive(arbitrary::Arbitrary))]
pub enum Message {
    /// `NXT_ROLE_REQUEST`.
    RoleRequest(Role),
    /// `NXT_ROLE_REPLY`.
    RoleReply(Role),
    /// `NXT_SET_FLOW_FORMAT`.
    SetFlowFormat(FlowFormat),
    /// `NXT_FLOW_MOD`, in OpenFlow 1.0.
    FlowMod(FlowMod),
    /// `NXT_FLOW_REMOVED`, in OpenFlow 1.0.
    FlowRemoved(FlowRemoved),
    /// `NXT_FLOW_MOD_TABLE_ID`: whether the upper eight bits of a flow-mod's command are its table from now on (of
    /// the version's own flow-mod too).
    FlowModTableId(bool),
    /// `NXT_SET_PACKET_IN_FORMAT`.
    SetPacketInFormat(PacketInFormat),
    /// `NXT_PACKET_IN`.
    PacketIn(PacketIn),
    /// `NXT_FLOW_AGE`: flows that end by hard timeout are told of.
    FlowAge,
    /// `NXT_SET_ASYNC_CONFIG`.
    SetAsyncConfig(AsyncConfig),
    /// `NXT_SET_CONTROLLER_ID`: which of [`super::Action::Controller`] go to this connection.
    SetControllerId(u16),
}

impl Message {
    /// Reads the data of a vendor message of OpenFlow 1.0, subtype included.
    ///
    /// # Errors
    /// The answer of a switch: `OFPBRC_BAD_SUBTYPE` to a message without a name here.
    pub fn decode(data: &[u8]) -> Result<Self, Refusal> {
        let mut reader = Reader::new(data, Fault::BAD_LENGTH);
        let subtype = reader.get()?;
        let message = Self::read_body(subtype, &mut reader).map_err(in_message)?;
        reader.finish()?;
        Ok(message)
    }

    /// Reads an experimenter message of OpenFlow 1.3.
    ///
    /// # Errors
    /// As [`Self::decode`].
    pub fn decode_experimenter(message: &Experimenter) -> Result<Self, Refusal> {
        let mut reader = Reader::new(&message.data, Fault::BAD_LENGTH);
        let decoded = Self::read_body(message.experimenter_type, &mut reader).map_err(in_message)?;
        reader.finish()?;
        Ok(decoded)
    }

    fn read_body(subtype: u32, reader: &mut Reader) -> Result<Self, Refusal> {
        Ok(match subtype {
            10 => Self::RoleRequest(reader.get()?),
            11 => Self::RoleReply(reader.get()?),
            12 => Self::SetFlowFormat(reader.get()?),
            13 => Self::FlowMod(reader.get()?),
            14 => Self::FlowRemoved(reader.get()?),
            15 => {
                let on = reader.get::<u8>()? != 0;
                reader.skip(7)?;
                Self::FlowModTableId(on)
            }
            16 => Self::SetPacketInFormat(reader.get()?),
            17 => Self::PacketIn(reader.get()?),
            18 => Self::FlowAge,
            19 => Self::SetAsyncConfig(reader.get()?),
            20 => {
                reader.skip(6)?;
                Self::SetControllerId(reader.get()?)
            }
            other => {
                return Err(Refusal::new(BAD_SUBTYPE, "the type of a Nicira message", u64::from(other), "10 to 20"));
            }
        })
    }

    const fn subtype(&self) -> u32 {
        match self {
            Self::RoleRequest(_) => 10,
            Self::RoleReply(_) => 11,
            Self::SetFlowFormat(_) => 12,
            Self::FlowMod(_) => 13,
            Self::FlowRemoved(_) => 14,
            Self::FlowModTableId(_) => 15,
            Self::SetPacketInFormat(_) => 16,
            Self::PacketIn(_) => 17,
            Self::FlowAge => 18,
            Self::SetAsyncConfig(_) => 19,
            Self::SetControllerId(_) => 20,
        }
    }

    fn write_body(&self, out: &mut Vec<u8>) {
        match self {
            Self::RoleRequest(role) | Self::RoleReply(role) => role.write(out),
            Self::SetFlowFormat(format) => format.write(out),
            Self::FlowMod(change) => change.write(out),
            Self::FlowRemoved(flow) => flow.write(out),
            Self::FlowModTableId(on) => [u8::from(*on), 0, 0, 0, 0, 0, 0, 0].write(out),
            Self::SetPacketInFormat(format) => format.write(out),
            Self::PacketIn(packet) => packet.write(out),
            Self::FlowAge => {}
            Self::SetAsyncConfig(config) => config.write(out),
            Self::SetControllerId(id) => {
                pad(out, 6);
                id.write(out);
            }
        }
    }

    /// The vendor message of OpenFlow 1.0.
    #[must_use]
    pub fn to_vendor(&self) -> v10::Vendor {
        let mut data = Vec::new();
        self.subtype().write(&mut data);
        self.write_body(&mut data);
        v10::Vendor { vendor: NICIRA, data }
    }

    /// The experimenter message of OpenFlow 1.3.
    #[must_use]
    pub fn to_experimenter(&self) -> Experimenter {
        let mut data = Vec::new();
        self.write_body(&mut data);
        Experimenter { experimenter: NICIRA, experimenter_type: self.subtype(), data }
    }
}
