// A fat tree of k-port switches (k^3/4 hosts); every host sends constant-rate UDP to one other.
//
// fat_tree --k=8 --seconds=10 --delay_us=0 --routing=nix|static

#include "measured_run.h"

#include "ns3/applications-module.h"
#include "ns3/nix-vector-routing-module.h"
#include "ns3/traffic-control-module.h"

using namespace ns3;

namespace
{

constexpr uint16_t kPort = 5001;
constexpr uint32_t kUdpPayload = 1000;
constexpr double kPacketsPerSecond = 125;

std::vector<uint64_t> flowBytes;
uint64_t delivered = 0;
double delaySeconds = 0;

void
Received(uint32_t flow, Ptr<const Packet> packet)
{
    SeqTsHeader header;
    packet->PeekHeader(header);
    flowBytes[flow] += packet->GetSize();
    ++delivered;
    delaySeconds += (Simulator::Now() - header.GetTs()).GetSeconds();
}

// SplitMix64: the same numbers in every language, so that both simulators have the same pairs.
uint64_t
Mixed(uint64_t value)
{
    value += 0x9e3779b97f4a7c15;
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
    value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
    return value ^ (value >> 31);
}

uint32_t
PartnerOf(uint32_t host, uint32_t hosts)
{
    return (host + 1 + Mixed(host) % (hosts - 1)) % hosts;
}

Ptr<Ipv4StaticRouting>
StaticRoutes(Ptr<Node> node)
{
    return Ipv4RoutingHelper::GetRouting<Ipv4StaticRouting>(node->GetObject<Ipv4>()->GetRoutingProtocol());
}

Ipv4Address
HostNetwork(uint32_t pod, uint32_t edge)
{
    return Ipv4Address((10U << 24) | (pod << 16) | (edge << 8));
}

// The addresses of a link's two ends, by its number: 172.16.0.0/12 in steps of four.
class LinkAddresses
{
  public:
    // Joins and returns the addresses of a's and b's new interfaces.
    std::pair<Ipv4Address, Ipv4Address> Join(PointToPointHelper& lines, Ptr<Node> a, Ptr<Node> b)
    {
        return Join(lines, a, b, Ipv4Address((172U << 24) | (16U << 16) | (m_next++ << 2)));
    }

    std::pair<Ipv4Address, Ipv4Address> Join(PointToPointHelper& lines, Ptr<Node> a, Ptr<Node> b, Ipv4Address network)
    {
        Ipv4AddressHelper addresses(network, "255.255.255.252");
        const auto devices = lines.Install(a, b);
        const auto interfaces = addresses.Assign(devices);
        m_disciplines.Uninstall(devices);
        return {interfaces.GetAddress(0), interfaces.GetAddress(1)};
    }

  private:
    uint32_t m_next = 0;
    TrafficControlHelper m_disciplines;
};

} // namespace

int
main(int argc, char* argv[])
{
    uint32_t k = 8;
    double seconds = 10;
    uint32_t delayUs = 0;
    std::string routing = "nix";
    CommandLine command(__FILE__);
    command.AddValue("k", "ports of a switch, an even number", k);
    command.AddValue("seconds", "virtual time that passes", seconds);
    command.AddValue("delay_us", "propagation delay of every link", delayUs);
    command.AddValue("routing", "nix or static", routing);
    command.Parse(argc, argv);
    if (k < 4 || k % 2 || k > 64 || (routing != "nix" && routing != "static"))
    {
        std::cerr << "k is " << k << ", routing " << routing
                  << "; allowed are even numbers from 4 to 64, and nix and static" << std::endl;
        return 2;
    }
    const uint32_t half = k / 2;
    const uint32_t hostCount = k * half * half;

    MeasuredRun run;
    NodeContainer hosts(hostCount);
    NodeContainer edges(k * half);
    NodeContainer aggregations(k * half);
    NodeContainer cores(half * half);
    InternetStackHelper internet;
    internet.SetIpv6StackInstall(false);
    if (routing == "nix")
    {
        Ipv4NixVectorHelper vectors;
        internet.SetRoutingHelper(vectors);
    }
    else
    {
        Ipv4StaticRoutingHelper routes;
        internet.SetRoutingHelper(routes);
    }
    internet.InstallAll();

    PointToPointHelper lines;
    lines.SetDeviceAttribute("DataRate", StringValue("1Gbps"));
    lines.SetChannelAttribute("Delay", TimeValue(MicroSeconds(delayUs)));
    lines.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", StringValue("1000p"));
    LinkAddresses links;
    const bool isStatic = routing == "static";
    const Ipv4Mask podMask("255.255.0.0");
    const Ipv4Mask edgeMask("255.255.255.0");
    std::vector<Ipv4Address> hostAddresses(hostCount);
    for (uint32_t pod = 0; pod < k; ++pod)
    {
        for (uint32_t e = 0; e < half; ++e)
        {
            const auto edge = edges.Get(pod * half + e);
            for (uint32_t h = 0; h < half; ++h)
            {
                const uint32_t number = (pod * half + e) * half + h;
                const Ipv4Address network(HostNetwork(pod, e).Get() | (h << 2));
                const auto ends = links.Join(lines, hosts.Get(number), edge, network);
                hostAddresses[number] = ends.first;
                if (isStatic)
                {
                    StaticRoutes(hosts.Get(number))->SetDefaultRoute(ends.second, 1);
                }
            }
            for (uint32_t a = 0; a < half; ++a)
            {
                const auto aggregation = aggregations.Get(pod * half + a);
                const auto ends = links.Join(lines, edge, aggregation);
                if (isStatic)
                {
                    // The way up is chosen by the destination's pod, and in the own pod by its edge switch.
                    for (uint32_t other = a; other < k; other += half)
                    {
                        if (other != pod)
                        {
                            StaticRoutes(edge)->AddNetworkRouteTo(
                                HostNetwork(other, 0), podMask, ends.second, half + a + 1);
                        }
                    }
                    for (uint32_t other = 0; other < half; ++other)
                    {
                        if (other != e && other == a)
                        {
                            StaticRoutes(edge)->AddNetworkRouteTo(
                                HostNetwork(pod, other), edgeMask, ends.second, half + a + 1);
                        }
                    }
                    StaticRoutes(aggregation)->AddNetworkRouteTo(HostNetwork(pod, e), edgeMask, ends.first, e + 1);
                }
            }
        }
        for (uint32_t a = 0; a < half; ++a)
        {
            for (uint32_t c = 0; c < half; ++c)
            {
                const auto aggregation = aggregations.Get(pod * half + a);
                const auto core = cores.Get(a * half + c);
                const auto ends = links.Join(lines, aggregation, core);
                if (isStatic)
                {
                    StaticRoutes(core)->AddNetworkRouteTo(HostNetwork(pod, 0), podMask, ends.first, pod + 1);
                    for (uint32_t other = 0; other < k; ++other)
                    {
                        if (other != pod && (other / half + other) % half == c)
                        {
                            StaticRoutes(aggregation)->AddNetworkRouteTo(
                                HostNetwork(other, 0), podMask, ends.second, half + c + 1);
                        }
                    }
                }
            }
        }
    }

    flowBytes.resize(hostCount);
    for (uint32_t host = 0; host < hostCount; ++host)
    {
        const uint32_t partner = PartnerOf(host, hostCount);
        UdpClientHelper clients(hostAddresses[partner], kPort);
        clients.SetAttribute("MaxPackets", UintegerValue(4'000'000'000));
        clients.SetAttribute("Interval", TimeValue(Seconds(1 / kPacketsPerSecond)));
        clients.SetAttribute("PacketSize", UintegerValue(kUdpPayload));
        auto client = clients.Install(hosts.Get(host));
        client.Start(Seconds(host / kPacketsPerSecond / hostCount));
        client.Stop(Seconds(seconds));
        UdpServerHelper servers(kPort);
        auto server = servers.Install(hosts.Get(host));
        server.Get(0)->TraceConnectWithoutContext("Rx", MakeBoundCallback(&Received, host));
    }

    run.Built();
    run.RunAndPrint(seconds, flowBytes, delivered, delaySeconds);
    Simulator::Destroy();
    return 0;
}
