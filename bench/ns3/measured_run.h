// What both programs measure of a run: packet-hops, time, memory, events, and each flow's share.
#pragma once

#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"

#include <chrono>
#include <cstdint>
#include <ctime>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

class MeasuredRun
{
  public:
    MeasuredRun()
        : m_begin(Clock::now()),
          m_bareBytes(MemoryBytes("VmRSS:"))
    {
    }

    // Called once all is built and before anything has run.
    void Built()
    {
        m_built = Clock::now();
        m_builtBytes = MemoryBytes("VmRSS:");
    }

    // Runs until `seconds` and prints one line of JSON; flows' bytes are those of their payload.
    void RunAndPrint(double seconds, const std::vector<uint64_t>& flowBytes, uint64_t& delivered, double& delaySeconds)
    {
        ns3::Simulator::Stop(ns3::Seconds(seconds));
        const auto before = Clock::now();
        const auto processorBefore = std::clock();
        ns3::Simulator::Run();
        const double processorSeconds = static_cast<double>(std::clock() - processorBefore) / CLOCKS_PER_SEC;
        const auto after = Clock::now();
        std::cout.precision(12);
        std::cout << "{\"packet_hops\": " << PacketHops() << ", \"delivered_packets\": " << delivered
                  << ", \"mean_delay_s\": " << (delivered ? delaySeconds / delivered : 0.0)
                  << ", \"setup_s\": " << Seconds(m_begin, m_built) << ", \"run_s\": " << Seconds(before, after)
                  << ", \"processor_s\": " << processorSeconds << ", \"bare_bytes\": " << m_bareBytes << ", \"built_bytes\": " << m_builtBytes
                  << ", \"ended_bytes\": " << MemoryBytes("VmRSS:") << ", \"peak_bytes\": " << MemoryBytes("VmHWM:")
                  << ", \"events\": " << ns3::Simulator::GetEventCount() << ", \"goodputs_bps\": [";
        const char* separator = "";
        for (const auto bytes : flowBytes)
        {
            std::cout << separator << 8.0 * bytes / seconds;
            separator = ", ";
        }
        std::cout << "]}" << std::endl;
    }

  private:
    using Clock = std::chrono::steady_clock;

    static double Seconds(Clock::time_point from, Clock::time_point to)
    {
        return std::chrono::duration<double>(to - from).count();
    }

    // The value of a line of /proc/self/status, which is in KiB.
    static uint64_t MemoryBytes(const std::string& wanted)
    {
        std::ifstream status("/proc/self/status");
        std::string word;
        while (status >> word)
        {
            if (word == wanted)
            {
                uint64_t kibibytes = 0;
                status >> kibibytes;
                return kibibytes * 1024;
            }
        }
        return 0;
    }

    // Every packet passes its device's queue, also when it need not wait there: what the queues took and do not hold any
    // more has left. Counting so costs the run nothing, as a trace of each packet would.
    static uint64_t PacketHops()
    {
        uint64_t hops = 0;
        for (auto node = ns3::NodeList::Begin(); node != ns3::NodeList::End(); ++node)
        {
            for (uint32_t device = 0; device < (*node)->GetNDevices(); ++device)
            {
                const auto line = ns3::DynamicCast<ns3::PointToPointNetDevice>((*node)->GetDevice(device));
                if (line)
                {
                    hops += line->GetQueue()->GetTotalReceivedPackets() - line->GetQueue()->GetNPackets();
                }
            }
        }
        return hops;
    }

    Clock::time_point m_begin;
    Clock::time_point m_built;
    uint64_t m_bareBytes;
    uint64_t m_builtBytes = 0;
};
