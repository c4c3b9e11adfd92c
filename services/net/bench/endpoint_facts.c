/* What the kernel says of a socket, and of the way to somewhere. */
#define _GNU_SOURCE
#include "endpoint.h"

#include "textfile.h"

#include <errno.h>
#include <ifaddrs.h>
#include <linux/capability.h>
#include <linux/ethtool.h>
#include <linux/sock_diag.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- sockets -------------------------------------------------------------------------------- */

static uint32_t option_of(int fd, int level, int option)
{
    int value = 0;
    socklen_t size = sizeof value;
    return getsockopt(fd, level, option, &value, &size) == 0 && value > 0 ? (uint32_t)value : 0;
}

void endpoint_buffers_in_force(int fd, uint32_t *send_bytes, uint32_t *receive_bytes)
{
    *send_bytes = option_of(fd, SOL_SOCKET, SO_SNDBUF);
    *receive_bytes = option_of(fd, SOL_SOCKET, SO_RCVBUF);
}

void endpoint_congestion_in_force(int fd, char name[CONGESTION_SIZE])
{
    socklen_t size = CONGESTION_SIZE;
    memset(name, 0, CONGESTION_SIZE);
    if (getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &size) != 0)
        name[0] = '\0';
    name[CONGESTION_SIZE - 1] = '\0';
}

bool endpoint_tcp(int fd, struct endpoint_tcp *tcp)
{
    struct tcp_info info;
    socklen_t size = sizeof info;
    memset(&info, 0, sizeof info);
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0)
        return false;
    uint64_t window = (uint64_t)info.tcpi_snd_cwnd * info.tcpi_snd_mss;
    *tcp = (struct endpoint_tcp){
        .retransmits = info.tcpi_total_retrans,
        .congestion_window_bytes = window < UINT32_MAX ? (uint32_t)window : UINT32_MAX,
        .path_mtu_bytes = info.tcpi_pmtu,
        .mss_bytes = info.tcpi_snd_mss,
        .rtt_s = info.tcpi_rtt * 1e-6,
    };
    return true;
}

uint32_t endpoint_drops(int fd)
{
    uint32_t values[SK_MEMINFO_VARS] = {0};
    socklen_t size = sizeof values;
    return getsockopt(fd, SOL_SOCKET, SO_MEMINFO, values, &size) == 0 ? values[SK_MEMINFO_DROPS]
                                                                      : 0;
}

uint32_t endpoint_path_mtu(int fd)
{
    struct endpoint peer;
    if (!endpoint_of_peer(fd, &peer))
        return 0;
    return peer.address.ss_family == AF_INET6 ? option_of(fd, IPPROTO_IPV6, IPV6_MTU)
                                              : option_of(fd, IPPROTO_IP, IP_MTU);
}

/* ---- congestion control --------------------------------------------------------------------- */

static const char AVAILABLE[] = "/proc/sys/net/ipv4/tcp_available_congestion_control";
static const char ALLOWED[] = "/proc/sys/net/ipv4/tcp_allowed_congestion_control";

static const char *why_not(const char *name, int error)
{
    static char why[512];
    char list[256];
    if (!textfile_read(error == EPERM ? ALLOWED : AVAILABLE, list, sizeof list))
        snprintf(list, sizeof list, "nothing that could be read");
    if (error == EPERM)
        snprintf(why, sizeof why,
                 "this user may not take it: net.ipv4.tcp_allowed_congestion_control has %s", list);
    else if (error == ENOENT)
        snprintf(
            why, sizeof why,
            "this kernel has no %s: net.ipv4.tcp_available_congestion_control has %s; `modprobe "
            "tcp_%s` may add it",
            name, list, name);
    else
        snprintf(why, sizeof why, "the kernel refuses it: %s", strerror(error));
    return why;
}

static bool may_take_any(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {{0}};
    if (syscall(SYS_capget, &header, sets) != 0)
        return false;
    return sets[CAP_NET_ADMIN / 32].effective >> CAP_NET_ADMIN % 32 & 1;
}

/* Whether the list has the word; true where it cannot be read: the socket will tell. */
static bool listed(const char *path, const char *word)
{
    char list[256], *at = NULL;
    if (!textfile_read(path, list, sizeof list))
        return true;
    for (char *one = strtok_r(list, " \n", &at); one; one = strtok_r(NULL, " \n", &at))
        if (!strcmp(one, word))
            return true;
    return false;
}

/* By what the kernel lists: to try it on a socket would load its module into the host's kernel. */
const char *endpoint_congestion_unsupported(const char *name)
{
    if (!listed(AVAILABLE, name))
        return why_not(name, ENOENT);
    return listed(ALLOWED, name) || may_take_any() ? NULL : why_not(name, EPERM);
}

/* ---- interfaces and routes ------------------------------------------------------------------ */

/* Names that ETHTOOL_GDRVINFO gives, and what a reader of a result wants to know. Drivers of real
 * devices are many; these have a `device` in /sys/class/net and are not in this list. */
static const struct {
    const char *driver, *kind;
} kinds[] = {
    {"veth", "veth"},         {"bridge", "bridge"},
    {"tun", "tun"},           {"virtio_net", "virtio"},
    {"hv_netvsc", "hyper-v"}, {"vmxnet3", "vmware"},
    {"xen_netfront", "xen"},  {"vif", "xen"},
    {"bonding", "bond"},      {"802.1Q VLAN Support", "vlan"},
    {"macvlan", "macvlan"},   {"ipvlan", "ipvlan"},
    {"vxlan", "vxlan"},       {"wireguard", "wireguard"},
};

static bool is_device(const char *interface)
{
    char path[64 + IF_NAMESIZE];
    snprintf(path, sizeof path, "/sys/class/net/%s/device", interface);
    return access(path, F_OK) == 0;
}

static bool driver_of(int fd, const char *interface, struct ethtool_drvinfo *driver)
{
    struct ifreq request = {.ifr_data = (void *)driver};
    memset(driver, 0, sizeof *driver);
    driver->cmd = ETHTOOL_GDRVINFO;
    snprintf(request.ifr_name, sizeof request.ifr_name, "%s", interface);
    return ioctl(fd, SIOCETHTOOL, &request) == 0;
}

static const char *kind_of(int fd, const char *interface, unsigned flags)
{
    struct ethtool_drvinfo driver;
    if (flags & IFF_LOOPBACK)
        return "lo";
    if (driver_of(fd, interface, &driver))
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
            if (!strcmp(driver.driver, kinds[i].driver))
                return kinds[i].kind;
    return is_device(interface) ? "physical" : "virtual";
}

static uint32_t mtu_of(int fd, const char *interface)
{
    struct ifreq request = {.ifr_mtu = 0};
    snprintf(request.ifr_name, sizeof request.ifr_name, "%s", interface);
    return ioctl(fd, SIOCGIFMTU, &request) == 0 ? (uint32_t)request.ifr_mtu : 0;
}

static bool has_address(const struct ifaddrs *interface, const struct endpoint *local)
{
    struct endpoint own = {.length = sizeof(struct sockaddr_in)};
    int family = interface->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6)
        return false;
    if (family == AF_INET6)
        own.length = sizeof(struct sockaddr_in6);
    memcpy(&own.address, interface->ifa_addr, own.length);
    return endpoint_same_host(&own, local);
}

static bool suits(const struct ifaddrs *interface, const struct endpoint *local, bool loops)
{
    if (!interface->ifa_addr)
        return false;
    return loops ? interface->ifa_flags & IFF_LOOPBACK : has_address(interface, local);
}

void endpoint_interface(const struct endpoint *local, const struct endpoint *peer,
                        struct endpoint_route *route)
{
    /* What goes to an address of this host takes the loopback, whatever interface has it. */
    bool loops = endpoint_is_loopback(local) || (peer && endpoint_same_host(local, peer));
    struct ifaddrs *all = NULL, *one;
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    route->interface[0] = '\0';
    route->kind = "unknown";
    route->mtu_bytes = 0;
    if (fd < 0 || getifaddrs(&all) != 0)
        all = NULL;
    for (one = all; one && !suits(one, local, loops);)
        one = one->ifa_next;
    if (one) {
        snprintf(route->interface, sizeof route->interface, "%s", one->ifa_name);
        route->kind = kind_of(fd, one->ifa_name, one->ifa_flags);
        route->mtu_bytes = mtu_of(fd, one->ifa_name);
    }
    freeifaddrs(all);
    if (fd >= 0)
        close(fd);
}

int endpoint_route(const struct endpoint *to, struct endpoint_route *route)
{
    struct endpoint somewhere = *to;
    memset(route, 0, sizeof *route);
    if (endpoint_port(&somewhere) == 0)
        endpoint_set_port(&somewhere, 9); /* discard; nothing is sent there */
    int fd = endpoint_connect(PROTOCOL_UDP, &somewhere, 1);
    if (fd < 0)
        return fd;
    int error = endpoint_of_socket(fd, &route->source) ? 0 : errno;
    if (!error) {
        endpoint_set_port(&route->source, 0);
        endpoint_interface(&route->source, to, route);
        route->path_mtu_bytes = endpoint_path_mtu(fd);
    }
    close(fd);
    return -error;
}

/* ---- which way to send datagrams ------------------------------------------------------------ */

static bool kernel_has_gso(void)
{
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), size = 1000, on = 1;
    if (fd < 0)
        return false;
    bool has = setsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &size, sizeof size) == 0 &&
               setsockopt(fd, IPPROTO_UDP, UDP_GRO, &on, sizeof on) == 0;
    close(fd);
    return has;
}

enum udp_path endpoint_udp_path(const struct endpoint_route *route, uint32_t block_bytes,
                                const char **why_not_gso)
{
    uint32_t mtu = route->path_mtu_bytes ? route->path_mtu_bytes : route->mtu_bytes;
    const char *why = NULL;
    if (2 * block_bytes > UDP_BLOCK_MOST)
        why = "one send has room for one datagram of this size";
    else if (mtu && block_bytes + endpoint_udp_header_bytes(&route->source) > mtu)
        why = "a datagram of this size does not fit one packet of the path";
    else if (!kernel_has_gso())
        why = "this kernel has no GSO and GRO for UDP";
    if (why_not_gso)
        *why_not_gso = why;
    return why ? UDP_MMSG : UDP_GSO;
}
