// Ten hosts send to ten others through two routers and one bottleneck: constant-rate UDP, or CUBIC.
//
// dumbbell --traffic=udp|tcp --seconds=100 --stagger_ms=100

#include "measured_run.h"

#include "ns3/applications-module.h"
#include "ns3/traffic-control-module.h"

using namespace ns3;

namespace
{

constexpr uint32_t kPairs = 10;
constexpr uint16_t kPort = 5001;
constexpr uint32_t kUdpPayload = 1000;
constexpr double kPacketsPerSecond = 1055;

std::vector<uint64_t> flowBytes(kPairs);
double tcpStagger = 0.1;
uint64_t delivered = 0;
double delaySeconds = 0;

void
UdpReceived(uint32_t flow, Ptr<const Packet> packet)
{
    SeqTsHeader header;
    packet->PeekHeader(header);
    flowBytes[flow] += packet->GetSize();
    ++delivered;
    delaySeconds += (Simulator::Now() - header.GetTs()).GetSeconds();
}

void
TcpReceived(uint32_t flow, Ptr<const Packet> bytes, const Address&)
{
    flowBytes[flow] += bytes->GetSize();
}

void
CountArrival(Ptr<const Packet>)
{
    ++delivered;
}

void
ConfigureTcp()
{
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", StringValue("ns3::TcpCubic"));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(200)));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1448));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(2));
    Config::SetDefault("ns3::TcpSocket::DelAckTimeout", TimeValue(MilliSeconds(40)));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(4'000'000));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(4'000'000));
}

void
AddUdp(uint32_t flow, Ptr<Node> sender, Ptr<Node> receiver, Ipv4Address to, double seconds)
{
    UdpServerHelper servers(kPort);
    auto server = servers.Install(receiver);
    server.Get(0)->TraceConnectWithoutContext("Rx", MakeBoundCallback(&UdpReceived, flow));
    UdpClientHelper clients(to, kPort);
    clients.SetAttribute("MaxPackets", UintegerValue(4'000'000'000));
    clients.SetAttribute("Interval", TimeValue(Seconds(1 / kPacketsPerSecond)));
    clients.SetAttribute("PacketSize", UintegerValue(kUdpPayload));
    auto client = clients.Install(sender);
    client.Start(Seconds(flow / kPacketsPerSecond / kPairs));
    client.Stop(Seconds(seconds));
}

void
AddTcp(uint32_t flow, Ptr<Node> sender, Ptr<Node> receiver, Ipv4Address to, double seconds)
{
    PacketSinkHelper sinks("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), kPort));
    auto sink = sinks.Install(receiver);
    sink.Get(0)->TraceConnectWithoutContext("Rx", MakeBoundCallback(&TcpReceived, flow));
    const auto line = receiver->GetDevice(receiver->GetNDevices() - 1);
    line->TraceConnectWithoutContext("MacRx", MakeCallback(&CountArrival));
    BulkSendHelper sources("ns3::TcpSocketFactory", InetSocketAddress(to, kPort));
    sources.SetAttribute("SendSize", UintegerValue(1448));
    auto source = sources.Install(sender);
    source.Start(Seconds(flow * tcpStagger));
    source.Stop(Seconds(seconds));
}

} // namespace

int
main(int argc, char* argv[])
{
    std::string traffic = "udp";
    double seconds = 100;
    uint32_t staggerMs = 100;
    CommandLine command(__FILE__);
    command.AddValue("traffic", "udp or tcp", traffic);
    command.AddValue("seconds", "virtual time that passes", seconds);
    command.AddValue("stagger_ms", "between the beginnings of TCP flows", staggerMs);
    command.Parse(argc, argv);
    tcpStagger = staggerMs / 1000.0;
    if (traffic != "udp" && traffic != "tcp")
    {
        std::cerr << "traffic is " << traffic << "; allowed are udp and tcp" << std::endl;
        return 2;
    }

    MeasuredRun run;
    ConfigureTcp();
    NodeContainer routers(2);
    NodeContainer senders(kPairs);
    NodeContainer receivers(kPairs);
    InternetStackHelper internet;
    internet.InstallAll();

    PointToPointHelper access;
    access.SetDeviceAttribute("DataRate", StringValue("1Gbps"));
    // An access queue that never drops: the bottleneck is to be the only place where packets are lost.
    access.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", StringValue("100000p"));
    PointToPointHelper bottleneck;
    bottleneck.SetDeviceAttribute("DataRate", StringValue("100Mbps"));
    bottleneck.SetChannelAttribute("Delay", StringValue("5ms"));
    bottleneck.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", StringValue("100p"));

    TrafficControlHelper disciplines;
    const auto addressed = [&](Ipv4AddressHelper& addresses, const NetDeviceContainer& devices) {
        auto interfaces = addresses.Assign(devices);
        disciplines.Uninstall(devices);
        addresses.NewNetwork();
        return interfaces;
    };
    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.0");
    addressed(addresses, bottleneck.Install(routers));
    for (uint32_t pair = 0; pair < kPairs; ++pair)
    {
        addressed(addresses, access.Install(senders.Get(pair), routers.Get(0)));
        const auto far = addressed(addresses, access.Install(receivers.Get(pair), routers.Get(1)));
        const auto add = traffic == "udp" ? AddUdp : AddTcp;
        add(pair, senders.Get(pair), receivers.Get(pair), far.GetAddress(0), seconds);
    }
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();

    run.Built();
    run.RunAndPrint(seconds, flowBytes, delivered, delaySeconds);
    Simulator::Destroy();
    return 0;
}
