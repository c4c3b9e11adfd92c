"""Whether this host is a guest of a hypervisor."""

import re

from hostbench.model.host import Virtualisation

# Makers and products of virtual machines, for processors that do not say that they are virtual.
_VIRTUAL = re.compile(
    r"qemu|kvm|bochs|vmware|virtualbox|innotek|parallels|xen|virtual machine|google compute"
    r"|openstack|bhyve|firecracker|cloud hypervisor|alibaba cloud ecs|digitalocean",
    re.IGNORECASE,
)
_AMAZON = "amazon ec2"


def is_guest(virtualisation: Virtualisation) -> bool:
    """Whether a hypervisor lies below, which may make up the hardware that its guests see."""
    made_by = f"{virtualisation.vendor or ''} {virtualisation.product or ''}"
    amazon = made_by.lower().startswith(_AMAZON) and ".metal" not in made_by
    return bool(virtualisation.hypervisor or amazon or _VIRTUAL.search(made_by))
