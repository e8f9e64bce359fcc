#!/usr/bin/env bash
# Downloads Debian's kernel and the modules of all guests into FOLDER. As root it installs QEMU and
# the packages of missing files with apt-get; otherwise it prints the command to type.
#
# usage: setup.sh FOLDER [FILE=PACKAGE...]
set -euo pipefail

folder=${1:?usage: setup.sh FOLDER [FILE=PACKAGE...]}
shift
modules="
  drivers/usb/common/usb-common drivers/usb/core/usbcore drivers/usb/usbip/usbip-core drivers/usb/usbip/vhci-hcd
  drivers/net/ethernet/intel/e1000/e1000
  drivers/virtio/virtio drivers/virtio/virtio_ring drivers/virtio/virtio_pci_legacy_dev
  drivers/virtio/virtio_pci_modern_dev drivers/virtio/virtio_pci
  drivers/char/virtio_console
  net/core/failover drivers/net/net_failover drivers/net/virtio_net
  net/ipv4/udp_tunnel net/ipv6/ip6_udp_tunnel crypto/crc32_generic fs/configfs/configfs
  drivers/infiniband/core/ib_core drivers/infiniband/core/ib_uverbs drivers/infiniband/core/ib_cm
  drivers/infiniband/core/iw_cm drivers/infiniband/core/rdma_cm drivers/infiniband/core/rdma_ucm
  drivers/infiniband/sw/rxe/rdma_rxe"

fail() {
  printf 'setup: %s\n' "$@" >&2
  exit 1
}

missing() {
  command -v qemu-system-x86_64 >/dev/null || echo qemu-system-x86
  [ -x /bin/busybox ] && ! ldd /bin/busybox >/dev/null 2>&1 || echo busybox-static
  for pair in "$@"; do
    [ -e "${pair%%=*}" ] || echo "${pair#*=}"
  done
}

packages=$(missing "$@" | sort -u | tr '\n' ' ')
if [ -n "$packages" ]; then
  [ "$(id -u)" = 0 ] || fail "Debian packages are missing. Type this, then run make again:" \
    "    sudo apt-get install -y --no-install-recommends $packages"
  echo "setup: installing $packages"
  export DEBIAN_FRONTEND=noninteractive
  # shellcheck disable=SC2086 # several words
  apt-get install -y -qq --no-install-recommends $packages >/dev/null || { apt-get update -qq &&
    apt-get install -y -qq --no-install-recommends $packages >/dev/null; } || fail "apt-get failed; see its output above"
fi

complete() {
  [ -f "$folder/vmlinuz" ] || return
  for module in $modules; do
    [ -f "$folder/${module##*/}.ko" ] || return
  done
}

complete && exit 0
echo "setup: downloading Debian's kernel"
rm -rf "$folder"
mkdir -p "$folder/package"
kernel=$(apt-cache depends linux-image-amd64 | sed -n 's/.*Depends: \(linux-image-[^ ]*\)$/\1/p' | head -1)
[ -n "$kernel" ] || fail "apt-cache has no linux-image-amd64; run apt-get update"
(cd "$folder/package" && apt-get download -qq "$kernel") || fail "apt-get could not download $kernel"
for module in $modules; do
  paths+=("./lib/modules/*/kernel/$module.ko")
done
dpkg-deb --fsys-tarfile "$folder"/package/*.deb | tar -x -C "$folder/package" --wildcards './boot/vmlinuz-*' "${paths[@]}"
find "$folder/package" -name '*.ko' -exec mv {} "$folder" \;
mv "$folder"/package/boot/vmlinuz-* "$folder/vmlinuz"
rm -rf "$folder/package"
