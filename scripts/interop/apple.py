"""Runs programs that were written for Apple's hdiutil, by their own code, against the hdiutil on the path.

Usage: apple.py dmgbuild FOLDER KIND...
       apple.py dmglib FOLDER KIND...
       apple.py mount_image_hdiutil FOLDER

FOLDER is empty; KIND is a format of read-only images, for dmglib a type of hdiutil create. What is made there stays. Nothing of the programs is changed but what names a Mac: hdiutil is
looked for on the path instead of in /usr/bin, the version of macOS is said to be 15.5, and cp stands in for ditto.
Only root with loop devices can attach what these programs make. Prints one line for each step; the status is 0
when every step gave what the program and this script expect.
"""
import os
import platform
import shutil
import subprocess
import sys

STAND_INS = {"/usr/bin/hdiutil": ["hdiutil"], "/usr/bin/ditto": ["cp", "-R"]}
CONTENT = bytes(range(256)) * 1000


def stand_in():
    """Lets the programs find their tools, and a Mac."""
    start = subprocess.Popen.__init__

    def elsewhere(self, args, *rest, **options):
        if not isinstance(args, str):
            args = STAND_INS.get(args[0], [args[0]]) + list(args[1:])
        start(self, args, *rest, **options)

    subprocess.Popen.__init__ = elsewhere
    platform.mac_ver = lambda *rest, **options: ("15.5", ("", "", ""), "arm64")


def expect(what, good):
    print("ok:" if good else "not ok:", what)
    if not good:
        sys.exit(1)


def try_dmgbuild(folder, *kinds):
    """Builds compressed images as its users do: create, attach, copy, detach, resize to the minimum, convert."""
    import dmgbuild

    source = os.path.join(folder, "Application.app")
    os.mkdir(source)
    with open(os.path.join(source, "program"), "wb") as file:
        file.write(CONTENT)
    for kind in kinds:
        done = []
        image = os.path.join(folder, kind + ".dmg")
        dmgbuild.build_dmg(image, "Name of it", callback=lambda step: done.append(step.get("command")), settings={
            "files": [source], "symlinks": {"Applications": "/Applications"}, "format": kind, "filesystem": "ext4",
            "compression_level": 9 if kind in ("UDZO", "UDBZ") else None, "icon_locations": {"Application.app": (100, 100)}})
        expect(f"dmgbuild made {kind}", os.path.getsize(image) > 0 and "hdiutil::convert" in done)


def try_dmglib(folder, *kinds):
    """Walks through everything that the module does with an image, of some types."""
    import dmglib

    dmglib.HDIUTIL_PATH = shutil.which("hdiutil")  # it looks whether that file is there
    names = {"UDIF": "plain.dmg", "SPARSE": "sparse.sparseimage", "SPARSEBUNDLE": "bundle.sparsebundle"}
    for kind, name in [(dmglib.DiskCreateBlankFormat(kind), names[kind]) for kind in kinds]:
        path = os.path.join(folder, name)
        dmglib.dmg_create_blank(path, disk_type=kind, size="48m")
        expect(f"dmglib made {name}, valid and not encrypted",
               os.path.exists(path) and dmglib.dmg_is_valid(path) and not dmglib.dmg_is_encrypted(path))
        image = dmglib.DiskImage(path)
        expect("no licence", not image.has_license_agreement())
        points = image.attach()
        expect("attached once and listed", len(points) == 1 and dmglib.dmg_already_attached(path)
               and dmglib.dmg_get_mountpoints(path) == points and path in dmglib.attached_images())
        with open(os.path.join(points[0], "file"), "wb") as file:
            file.write(CONTENT)
        image.detach(force=False)
        expect("detached", not dmglib.dmg_already_attached(path) and not os.path.ismount(points[0]))
        made = dmglib.DiskImage(path).convert(os.path.join(folder, name + "-packed"), dmglib.DiskFormat.COMPRESSED)
        with dmglib.attachedDiskImage(made) as points:
            with open(os.path.join(points[0], "file"), "rb") as file:
                expect("the file is in the compressed image", file.read() == CONTENT)
        expect("detached again", made not in dmglib.attached_images())
        dmglib.DiskImage(path).attach()
        dmglib.dmg_detach_already_attached(path, force=False)
        expect("detached by mount point", dmglib.attached_images() == [])


def try_mount_image_hdiutil(folder):
    """Mounts a raw image, and attaches one without mounting."""
    import mount_image_hdiutil

    path = os.path.join(folder, "raw.dmg")
    subprocess.run(["hdiutil", "create", "-quiet", "-size", "48m", path], check=True)
    device, point = mount_image_hdiutil.mount_image(path)
    expect("mounted", os.path.ismount(point) and os.path.exists(device))
    subprocess.run(["umount", point], check=True)  # it does so by sudo
    mount_image_hdiutil.umount_image(device)
    expect("detached", not os.path.ismount(point))
    device = mount_image_hdiutil.attach_image(path)
    expect("attached as a whole", os.path.exists(device))
    mount_image_hdiutil.detach_image(device)
    listed = subprocess.run(["hdiutil", "info"], capture_output=True, text=True, check=True).stdout
    expect("detached", path not in listed)


if __name__ == "__main__":
    if len(sys.argv) < 3 or "try_" + sys.argv[1] not in globals():
        sys.exit(__doc__)
    stand_in()
    globals()["try_" + sys.argv[1]](os.path.realpath(sys.argv[2]), *sys.argv[3:])
