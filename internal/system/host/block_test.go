package host

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"dmgbench/internal/result"
)

const mounts = `22 1 259:2 / / rw - ext4 /dev/nvme0n1p2 rw
23 22 0:5 / /tmp rw - tmpfs tmpfs rw
24 22 8:1 / /mnt/my\040disk rw - xfs /dev/sda1 rw
25 22 253:0 / /home rw - ext4 /dev/mapper/home rw
26 22 0:44 / /pool rw - btrfs /dev/sda1 rw
27 22 0:45 / /net rw - nfs4 server:/x rw
28 22 254:0 / /virt rw - ext4 /dev/vda rw
29 22 9:0 / /raid rw - ext4 /dev/md0 rw
30 22 253:9 / /loop rw - ext4 /dev/dm-9 rw
31 22 0:99 / /over rw - overlay overlay rw
nonsense
`

func TestUnderFindsTheDisk(t *testing.T) {
	const nvme, sda = "sys/devices/pci0/nvme/nvme0/nvme0n1", "sys/devices/pci0/ata1/host0/target0/block/sda"
	tr := grow(t, map[string]string{
		"proc/self/mountinfo":         mounts,
		"sys/dev/block/259:2":         "-> ../../devices/pci0/nvme/nvme0/nvme0n1/nvme0n1p2",
		nvme + "/nvme0n1p2/partition": "2", nvme + "/queue/rotational": "0\n", nvme + "/device/model": "Example SSD 1TB   \n",
		"sys/dev/block/8:1": "-> ../../devices/pci0/ata1/host0/target0/block/sda/sda1", "sys/class/block/sda1": "-> ../../devices/pci0/ata1/host0/target0/block/sda/sda1",
		sda + "/sda1/partition": "1", sda + "/queue/rotational": "1\n", sda + "/device/vendor": "ATA     \n", sda + "/device/model": "Spinner\n",
		"sys/dev/block/253:0": "-> ../../devices/virtual/block/dm-0", "sys/devices/virtual/block/dm-0/dm/uuid": "CRYPT-LUKS2-1\n",
		"sys/devices/virtual/block/dm-0/slaves/nvme0n1p2": "-> ../../../../pci0/nvme/nvme0/nvme0n1/nvme0n1p2",
		"sys/dev/block/254:0":                             "-> ../../devices/pci0/virtio1/block/vda", "sys/devices/pci0/virtio1/block/vda/queue/rotational": "1\n",
		"sys/dev/block/9:0": "-> ../../devices/virtual/block/md0", "sys/devices/virtual/block/md0/slaves/sda": "", "sys/devices/virtual/block/md0/slaves/sdb": "",
		"sys/dev/block/253:9": "-> ../../devices/virtual/block/dm-9", "sys/devices/virtual/block/dm-9/slaves/dm-9": "-> ../../dm-9",
	})
	for path, want := range map[string]result.Disk{
		"/srv/x":        {Filesystem: "ext4", Device: "Example SSD 1TB", Bus: "nvme", Medium: "ssd"},
		"/tmp":          {Filesystem: "tmpfs", Medium: "memory"},
		"/tmpfoo":       {Filesystem: "ext4", Device: "Example SSD 1TB", Bus: "nvme", Medium: "ssd"},
		"/mnt/my disk":  {Filesystem: "xfs", Device: "Spinner", Bus: "sata", Medium: "hdd"},
		"/home/a":       {Filesystem: "ext4", Device: "Example SSD 1TB", Bus: "nvme", Medium: "ssd", Encrypted: "dm-crypt"},
		"/pool/vol":     {Filesystem: "btrfs", Device: "Spinner", Bus: "sata", Medium: "hdd"},
		"/net/a":        {Filesystem: "nfs4", Bus: "network", Medium: "network"},
		"/virt":         {Filesystem: "ext4", Bus: "virtio", Medium: "unknown"},
		"/raid/x":       {Filesystem: "ext4", Bus: "several disks"},
		"/loop/forever": {Filesystem: "ext4"},
		"/over":         {Filesystem: "overlay"},
	} {
		assert.Equal(t, want, tr.under(path), path)
	}
}

// Disks on a bus of devices outside are external; memory is no disk, whatever it is called.
func TestExternalDisksAndMemory(t *testing.T) {
	const usb, card = "sys/devices/pci0/usb1/1-1/host3/block/sdc", "sys/devices/pci0/mmc0/block/mmcblk0"
	const zram, nbd = "sys/devices/virtual/block/zram0", "sys/devices/virtual/block/nbd0"
	tr := grow(t, map[string]string{
		"proc/self/mountinfo": "1 0 8:1 / / rw - ext4 /dev/a rw\n2 1 8:2 / /card rw - ext4 /dev/b rw\n" +
			"3 1 8:3 / /zram rw - ext4 /dev/c rw\n4 1 8:4 / /nbd rw - ext4 /dev/d rw\n",
		"sys/dev/block/8:1": "-> ../../devices/pci0/usb1/1-1/host3/block/sdc", usb + "/queue/rotational": "0\n",
		"sys/dev/block/8:2": "-> ../../devices/pci0/mmc0/block/mmcblk0", card + "/queue/rotational": "0\n", card + "/removable": "1\n",
		"sys/dev/block/8:3": "-> ../../devices/virtual/block/zram0", zram + "/queue/rotational": "0\n",
		"sys/dev/block/8:4": "-> ../../devices/virtual/block/nbd0", nbd + "/queue/rotational": "0\n",
	})
	for path, want := range map[string][2]string{
		"/x": {"ssd", "external"}, "/card/x": {"ssd", "external"}, "/zram/x": {"memory", ""}, "/nbd/x": {"network", ""},
	} {
		d := tr.under(path)
		assert.Equal(t, want, [2]string{d.Medium, d.Location}, path)
	}
}

func TestBlockDirStaysInTheTree(t *testing.T) {
	tr := grow(t, map[string]string{"sys/dev/block/1:1": "-> ../../../../../../../../../../../../etc", "sys/dev/block/1:2": "-> 1:2"})
	assert.Equal(t, "etc", tr.blockDir("sys/dev/block/1:1"))
	assert.Equal(t, "sys/dev/block/1:2", tr.blockDir("sys/dev/block/1:2"))
	assert.Empty(t, tr.blockDir("sys/dev/block/1:3"))
}

func TestTheDeviceOfAMappingIsFoundByItsLink(t *testing.T) {
	const dm = "sys/devices/virtual/block/dm-3"
	tr := grow(t, map[string]string{
		"proc/self/mountinfo": "26 22 0:44 / / rw - btrfs /dev/mapper/pool rw,compress-force=zstd:3\n", "dev/mapper/pool": "-> ../dm-3",
		"sys/class/block/dm-3": "-> ../../devices/virtual/block/dm-3", dm + "/dm/uuid": "CRYPT-LUKS2-1\n", dm + "/queue/rotational": "0\n",
	})
	assert.Equal(t, dm, tr.mounted(tr.mount("/x")))
	assert.Equal(t, result.Disk{Filesystem: "btrfs", Medium: "ssd", Encrypted: "dm-crypt", Compressed: true}, tr.under("/x"))
}
