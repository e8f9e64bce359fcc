#!/usr/bin/env bash
# Downloads Debian's kernel and its USB modules into FOLDER. As root it installs QEMU and the guest's
# programs with apt-get; otherwise it prints the command to type.
#
# usage: setup.sh FOLDER
set -euo pipefail

folder=${1:?usage: setup.sh FOLDER}
modules="usb/common/usb-common usb/core/usbcore usb/usbip/usbip-core usb/usbip/vhci-hcd net/ethernet/intel/e1000/e1000"

fail() {
  printf 'setup: %s\n' "$@" >&2
  exit 1
}

missing() {
  command -v qemu-system-x86_64 >/dev/null || echo qemu-system-x86
  [ -x /usr/sbin/usbip ] || echo usbip
  [ -x /bin/busybox ] && ! ldd /bin/busybox >/dev/null 2>&1 || echo busybox-static
}

packages=$(missing | tr '\n' ' ')
if [ -n "$packages" ]; then
  [ "$(id -u)" = 0 ] || fail "Debian packages are missing. Type this, then run make again:" \
    "    sudo apt-get install -y --no-install-recommends $packages"
  echo "setup: installing $packages"
  export DEBIAN_FRONTEND=noninteractive
  # shellcheck disable=SC2086 # several words
  apt-get install -y -qq --no-install-recommends $packages >/dev/null || { apt-get update -qq &&
    apt-get install -y -qq --no-install-recommends $packages >/dev/null; } || fail "apt-get failed; see its output above"
fi

[ -f "$folder/vmlinuz" ] && [ -f "$folder/vhci-hcd.ko" ] && exit 0
echo "setup: downloading Debian's kernel"
rm -rf "$folder"
mkdir -p "$folder/package"
kernel=$(apt-cache depends linux-image-amd64 | sed -n 's/.*Depends: \(linux-image-[^ ]*\)$/\1/p' | head -1)
[ -n "$kernel" ] || fail "apt-cache has no linux-image-amd64; run apt-get update"
(cd "$folder/package" && apt-get download -qq "$kernel") || fail "apt-get could not download $kernel"
for module in $modules; do
  paths+=("./lib/modules/*/kernel/drivers/$module.ko")
done
dpkg-deb --fsys-tarfile "$folder"/package/*.deb | tar -x -C "$folder/package" --wildcards './boot/vmlinuz-*' "${paths[@]}"
find "$folder/package" -name '*.ko' -exec mv {} "$folder" \;
mv "$folder"/package/boot/vmlinuz-* "$folder/vmlinuz"
rm -rf "$folder/package"
