"""Repeats, on the loopback of the namespace it runs in, each UDP datagram of so many bytes: what a
network does now and then. Prints a line when it listens; ends when it is ended."""

import socket
import sys

IP_HEADER, UDP_HEADER = 20, 8


def main() -> None:
    wanted = IP_HEADER + UDP_HEADER + int(sys.argv[1])
    tap = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x0800))
    tap.bind(("lo", 0x0800))
    raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
    # Its own copies come by again; every IP packet has a number, and a copy gets this one.
    mark = b"\xbe\xef"
    sys.stdout.write("\n")
    sys.stdout.flush()
    while True:
        packet, where = tap.recvfrom(65536)
        if where[2] != socket.PACKET_HOST or len(packet) != wanted or packet[9] != 17:
            continue
        if packet[4:6] != mark:
            copy = packet[:4] + mark + packet[6:10] + b"\0\0" + packet[12:26] + b"\0\0"
            raw.sendto(copy + packet[28:], (socket.inet_ntoa(packet[16:20]), 0))


main()
