//! What both versions say of ports and queues in the same order: their numbers of ports have other widths, and 1.3 has
//! more fields at the end.

/// Ports, what happens to them and how they are changed. `[N]` are bytes of padding behind the number and the address.
macro_rules! port_messages {
    ($(#[$meta:meta])* Port: $number:ty $([$after_number:literal])?, MacAddress $([$after_address:literal])?
        $(, $(#[$field_meta:meta])* $field:ident : $kind:ty)*) => {
        record! {
            $(#[$meta])*
            pub struct Port {
                /// Number.
                pub port_no: $number $([$after_number])?;
                /// Address.
                pub hw_addr: MacAddress $([$after_address])?;
                /// Name.
                pub name: Text<16>;
                /// Configuration.
                pub config: PortConfig;
                /// State.
                pub state: PortState;
                /// Features in use.
                pub current: PortFeatures;
                /// Features that are advertised.
                pub advertised: PortFeatures;
                /// Features that the port has.
                pub supported: PortFeatures;
                /// Features that the other end advertises.
                pub peer: PortFeatures;
                $($(#[$field_meta])* pub $field: $kind;)*
            }
        }

        open_enum! {
            /// The change of a port.
            pub enum PortReason: u8 { Add = 0 "OFPPR_ADD", Delete = 1 "OFPPR_DELETE", Modify = 2 "OFPPR_MODIFY" }
        }

        record! {
            /// `OFPT_PORT_STATUS`.
            pub struct PortStatus {
                /// The change that happened.
                pub reason: PortReason [7];
                /// The port as it is now.
                pub port: Port;
            }
        }

        record! {
            /// `OFPT_PORT_MOD`.
            pub struct PortMod {
                /// Number.
                pub port_no: $number $([$after_number])?;
                /// Address, which must be the port's.
                pub hw_addr: MacAddress $([$after_address])?;
                /// New configuration.
                pub config: PortConfig;
                /// The bits of it to take over.
                pub mask: PortConfig;
                /// Features to advertise; 0: as they are.
                pub advertise: PortFeatures [4];
            }
        }
    };
}

/// The statistics of ports and queues. The numbers of ports, with the padding behind each, and the words of requests
/// that ask for all are the version's.
macro_rules! port_statistics {
    (PortStats: $number:ty [$after_number:literal], $all_ports:literal,
        QueueStats: $queue_port:ty $([$after_port:literal])?, $all_ports_of_queues:literal
        $(, $(#[$field_meta:meta])* $field:ident : $kind:ty)*) => {
        record! {
            /// The port that is asked about.
            pub struct PortStatsRequest {
                #[doc = concat!("Number; ", $all_ports, ": all.")]
                pub port_no: $number [$after_number];
            }
        }

        record! {
            /// The statistics of a port. A counter that the switch does not have is all ones.
            pub struct PortStats {
                /// Number.
                pub port_no: $number [$after_number];
                /// Frames received.
                pub rx_packets: u64;
                /// Frames sent.
                pub tx_packets: u64;
                /// Bytes received.
                pub rx_bytes: u64;
                /// Bytes sent.
                pub tx_bytes: u64;
                /// Received frames that were dropped.
                pub rx_dropped: u64;
                /// Frames to send that were dropped.
                pub tx_dropped: u64;
                /// Errors in receiving.
                pub rx_errors: u64;
                /// Errors in sending.
                pub tx_errors: u64;
                /// Frame alignment errors.
                pub rx_frame_errors: u64;
                /// Frames that overran.
                pub rx_over_errors: u64;
                /// Check sequence errors.
                pub rx_crc_errors: u64;
                /// Collisions.
                pub collisions: u64;
                $($(#[$field_meta])* pub $field: $kind;)*
            }
        }

        record! {
            /// The queue that is asked about.
            pub struct QueueStatsRequest {
                #[doc = concat!("Port; ", $all_ports_of_queues, ": all.")]
                pub port_no: $queue_port $([$after_port])?;
                /// Queue; [`crate::v13::ALL_QUEUES`]: all.
                pub queue_id: u32;
            }
        }

        record! {
            /// The statistics of a queue.
            pub struct QueueStats {
                /// Port.
                pub port_no: $queue_port $([$after_port])?;
                /// Queue.
                pub queue_id: u32;
                /// Bytes sent.
                pub tx_bytes: u64;
                /// Frames sent.
                pub tx_packets: u64;
                /// Frames dropped because the queue was full.
                pub tx_errors: u64;
                $($(#[$field_meta])* pub $field: $kind;)*
            }
        }
    };
}

pub(crate) use {port_messages, port_statistics};
