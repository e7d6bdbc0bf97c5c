"""What is on a disk: the device in a sparse image, partition tables, file systems. For encrypted.py.

Written from section 6 of the format page (sparse image), and from what is generally known of GPT (UEFI) and exFAT; sgdisk
and mkfs.exfat made the disks that it was tried on.
A device is anything with a size and read(offset, length).
"""
import struct
import zlib

SECTOR = 512
APPLE_TYPES = {
    "48465300-0000-11aa-aa11-00306543ecac": ("Apple_HFS", ("HFS+", "HFSX")),
    "7c3457ef-0000-11aa-aa11-00306543ecac": ("Apple_APFS", ("APFS",)),
}


class Failure(Exception):
    """A message of the form `<doing> <object>: <cause>` and the exit status."""

    def __init__(self, message, status=1):
        super().__init__(message)
        self.status = status


class SparseImage:
    """The device in a decrypted sparse image (section 6)."""

    def __init__(self, base):
        self.base, self.slots = base, {}
        node, table, entries = 0, 0x40, 1008
        header = base.read(0, 4096)
        version, band = struct.unpack_from(">II", header, 4)
        follows, sectors = struct.unpack_from(">QQ", header, 0x14)
        self.band_size, self.size = band * SECTOR, sectors * SECTOR
        if version != 3 or band == 0:
            raise Failure(f"reading sparse image header: version {version}, {band} sectors a band")
        while True:
            numbers = struct.unpack_from(f">{entries}I", header, table)
            used = len(numbers) - numbers.count(0)
            if 0 in numbers[:used]:
                raise Failure(f"reading sparse image node at {node}: entries behind an empty one")
            for slot, number in enumerate(numbers[:used]):
                if number in self.slots or (number - 1) * self.band_size >= self.size:
                    raise Failure(f"reading sparse image node at {node}: band {number} twice or out of range")
                self.slots[number] = node + 4096 + slot * self.band_size
                if self.slots[number] + self.band_size > base.size:
                    raise Failure(f"reading sparse image node at {node}: band {number} lies outside the file")
            if not follows:
                return
            if follows <= node or follows + 4096 > base.size:
                raise Failure(f"reading sparse image node at {node}: the next node at {follows}")
            node, table, entries = follows, 0x38, 1010
            header = base.read(node, 4096)
            (follows,) = struct.unpack_from(">Q", header, 0x0C)
            if header[:4] != b"sprs":
                raise Failure(f"reading sparse image node at {node}: no signature")

    def read(self, offset, length):
        end, parts = min(offset + length, self.size), []
        while offset < end:
            band, within = divmod(offset, self.band_size)
            want = min(self.band_size - within, end - offset)
            slot = self.slots.get(band + 1)
            parts.append(bytes(want) if slot is None else self.base.read(slot + within, want))
            offset += want
        return b"".join(parts)


class Checker:
    """Checks partition tables and file system signatures, prints what it finds, and collects what is wrong."""

    def __init__(self, device):
        self.device, self.problems = device, []
        self.last = device.size // SECTOR - 1

    def wrong(self, what, cause):
        self.problems.append(f"checking {what}: {cause}")

    def sectors(self, lba, count=1):
        return self.device.read(lba * SECTOR, count * SECTOR)

    def run(self):
        print(f"device: {self.device.size} bytes")
        if self.device.size % SECTOR or self.last < 3:
            return self.wrong("device", "its size is no multiple of 512, or below 4 sectors")
        mbr = self.sectors(0)
        slots = [mbr[at:at + 16] for at in range(446, 510, 16)]
        gpt = any(self.sectors(lba)[:8] == b"EFI PART" for lba in (1, self.last))
        if not gpt and not any(slot[4] == 0xEE for slot in slots) and file_system(self.device, 0):
            print("no partition table: one file system on the whole device")
            return self.partition("device", 0, self.last)
        if not gpt and mbr[:2] == b"ER":
            return self.wrong("device", "it has an Apple partition map, which is not checked here")
        self.protective(mbr, slots)
        primary, backup = self.header("primary GPT", 1), self.header("backup GPT", self.last)
        if primary and backup:
            self.compare(primary, backup)
        if primary or backup:
            self.partitions(primary or backup)

    def protective(self, mbr, slots):
        what = "protective MBR"
        if mbr[510:] != b"\x55\xaa":
            self.wrong(what, "no signature 55 AA")
        used = [slot for slot in slots if any(slot)]
        if len(used) != 1 or used[0][4] != 0xEE:
            return self.wrong(what, f"partition types {[f'{slot[4]:02x}' for slot in used]}, not only ee")
        start, count = struct.unpack_from("<II", used[0], 8)
        if start != 1 or count not in (min(self.last, 0xFFFFFFFF), 0xFFFFFFFF):
            self.wrong(what, f"it covers {count} sectors from {start}, the device has {self.last + 1}")
        print(f"{what}: {count} sectors from {start}")

    def header(self, what, lba):
        """Returns the fields of a GPT header, and its table, if both CRCs are right."""
        raw = self.sectors(lba)
        if raw[:8] != b"EFI PART":
            return self.wrong(what, f"no signature EFI PART in sector {lba}")
        revision, size, crc = struct.unpack_from("<III", raw, 8)
        if revision != 0x10000 or not 92 <= size <= SECTOR:
            return self.wrong(what, f"revision {revision:#x}, header size {size}")
        found = zlib.crc32(raw[:16] + bytes(4) + raw[20:size])
        if found != crc:
            return self.wrong(what, f"header CRC {crc:08x}, computed {found:08x}")
        names = ("mine", "other", "first", "last", "disk", "table", "count", "entry", "crc")
        gpt = dict(zip(names, struct.unpack_from("<QQQQ16sQIII", raw, 24)))
        if (gpt["mine"], gpt["other"]) != (lba, self.last + 1 - lba):
            self.wrong(what, f"header in sector {lba} of {self.last + 1} says {gpt['mine']}, other {gpt['other']}")
        length = gpt["count"] * gpt["entry"]
        if gpt["entry"] < 128 or gpt["entry"] % 128 or not 0 < length <= 1 << 24:
            return self.wrong(what, f"{gpt['count']} entries of {gpt['entry']} bytes")
        end = gpt["table"] + -(-length // SECTOR)  # first sector behind the table
        limit = (2, gpt["first"]) if lba == 1 else (gpt["last"] + 1, lba)
        if gpt["table"] < limit[0] or end > limit[1]:
            self.wrong(what, f"table in sectors {gpt['table']}..{end - 1}, not inside {limit[0]}..{limit[1] - 1}")
        gpt["entries"] = self.device.read(gpt["table"] * SECTOR, length)
        found = zlib.crc32(gpt["entries"])
        if found != gpt["crc"]:
            return self.wrong(what, f"table CRC {gpt['crc']:08x}, computed {found:08x}")
        print(f"{what}: sector {lba}, header CRC {crc:08x}, table CRC {found:08x}")
        return gpt

    def compare(self, primary, backup):
        for name in ("first", "last", "disk", "count", "entry", "entries"):
            if primary[name] != backup[name]:
                self.wrong("backup GPT", f"its field `{name}` is not the one of the primary")

    def partitions(self, gpt):
        busy = gpt["first"]
        size = gpt["entry"]
        entries = [gpt["entries"][at:at + size] for at in range(0, len(gpt["entries"]), size)]
        used = [(number, entry) for number, entry in enumerate(entries, 1) if any(entry[:16])]
        for number, entry in sorted(used, key=lambda item: item[1][32:40][::-1]):
            start, end = struct.unpack_from("<QQ", entry, 32)
            what = f"partition {number}"
            if start < busy or end < start or end > gpt["last"]:
                self.wrong(what, f"sectors {start}..{end} overlap, or lie outside {gpt['first']}..{gpt['last']}")
                continue
            busy = end + 1
            self.partition(what, start, end, guid(entry[:16]))

    def partition(self, what, start, end, kind=None):
        system = file_system(self.device, start * SECTOR)
        name, systems = APPLE_TYPES.get(kind, (kind, None))
        print(f"{what}: sectors {start}..{end}, type {name or 'none'}, file system {system or 'unknown'}")
        head = self.sectors(start, min(128, end - start + 1))
        if system is None and any(head):
            self.wrong(what, "its file system is not known, and it is not blank")
        elif system and systems and system not in systems:
            self.wrong(what, f"{system} in a partition of type {name}")
        if system == "exFAT":
            self.exfat(what, start, end)

    def exfat(self, what, start, end):
        shift = self.sectors(start)[108]
        if not 9 <= shift <= 12 or (24 << shift) > (end + 1 - start) * SECTOR:
            return self.wrong(what, f"exFAT sectors of 2^{shift} bytes")
        sector = 1 << shift
        for region, first in (("main", 0), ("backup", 12)):
            raw = self.device.read(start * SECTOR + first * sector, 12 * sector)
            found = boot_checksum(raw[:11 * sector])
            if raw[3:11] != b"EXFAT   " or raw[510:512] != b"\x55\xaa":
                self.wrong(what, f"{region} exFAT boot region without signature")
            elif raw[11 * sector:] != struct.pack("<I", found) * (sector // 4):
                stored = struct.unpack_from("<I", raw, 11 * sector)[0]
                self.wrong(what, f"{region} exFAT boot region: checksum {stored:08x}, computed {found:08x}")
            elif struct.unpack_from("<Q", raw, 72)[0] * sector > (end + 1 - start) * SECTOR:
                self.wrong(what, f"{region} exFAT boot region: the volume is longer than the partition")
            else:
                print(f"{what}: {region} exFAT boot region, checksum {found:08x}")


def file_system(device, offset):
    head = device.read(offset, 2048)
    for name, at, magic in (("APFS", 32, b"NXSB"), ("exFAT", 3, b"EXFAT   "), ("HFS+", 1024, b"H+\0\4"),
                            ("HFSX", 1024, b"HX\0\5"), ("ext4", 1024 + 56, b"\x53\xef"), ("FAT32", 82, b"FAT32   "),
                            ("FAT16", 54, b"FAT16   "), ("FAT12", 54, b"FAT12   ")):
        if head[at:at + len(magic)] == magic:
            return name
    return None


def boot_checksum(data):
    """The exFAT sum over sectors 0 to 10, without VolumeFlags (106, 107) and PercentInUse (112)."""
    total = 0
    for at, byte in enumerate(data):
        if at not in (106, 107, 112):
            total = ((total >> 1 | total << 31) + byte) & 0xFFFFFFFF
    return total


def guid(raw):
    first, second, third = struct.unpack_from("<IHH", raw)
    return f"{first:08x}-{second:04x}-{third:04x}-{raw[8:10].hex()}-{raw[10:].hex()}"
