# Start a real systemd as process 1 of a machine of its own: own mounts, processes, network and control groups.
#
# Arguments: an empty folder, the source tree, the interpreter's folder, the folder of its packages,
# the name of a control group. The tree is /opt/gantry with an environment like that of `make`;
# system files are read-only, and everything else is in memory.
set -eu
folder=$1 tree=$2 python=$3 packages=$4 group=$5
if [ "${6:-}" != inside ]; then
    mount --make-rprivate /
    mount -t cgroup2 cgroup2 "$folder"
    mkdir "$folder/$group"
    echo $$ > "$folder/$group/cgroup.procs"
    umount "$folder"
    exec unshare --pid --fork --kill-child --mount --uts --ipc --net --cgroup sh "$0" "$@" inside
fi

mount -t tmpfs -o mode=755 tmpfs "$folder"
cd "$folder"
mkdir -p usr etc/systemd/system dev proc sys run tmp old root var/lib var/log opt/gantry opt/python
chmod 1777 tmp

mount --bind -o ro /usr usr
for each in bin sbin lib lib64; do
    [ ! -e "/usr/$each" ] || ln -s "usr/$each" "$each"
done
mkdir changes changes/up changes/work
mount -t overlay -o "lowerdir=$tree,upperdir=changes/up,workdir=changes/work" overlay opt/gantry
mount --bind -o ro "$python" opt/python
mkdir -p opt/gantry/.venv
mount -t tmpfs -o mode=755 tmpfs opt/gantry/.venv
version=${packages%/site-packages}
version=${version##*/}
mkdir -p "opt/gantry/.venv/bin" "opt/gantry/.venv/lib/$version/site-packages"
mount --bind -o ro "$packages" "opt/gantry/.venv/lib/$version/site-packages"
printf 'home = /opt/python/bin\ninclude-system-site-packages = false\n' > opt/gantry/.venv/pyvenv.cfg
ln -s "/opt/python/bin/$version" opt/gantry/.venv/bin/python

for each in passwd group shadow nsswitch.conf alternatives ssl login.defs; do
    [ ! -e "/etc/$each" ] || cp -R "/etc/$each" etc/
done
echo /opt/python/lib > etc/ld.so.conf
printf '127.0.0.1 localhost\n' > etc/hosts
touch etc/machine-id etc/fstab
# Units of the system that have nothing to do in a machine like this, or would reach beyond it.
for each in console-getty.service getty.target systemd-logind.service systemd-sysctl.service systemd-remount-fs.service \
    systemd-modules-load.service systemd-udevd.service systemd-udev-trigger.service dbus.service dbus.socket \
    dev-hugepages.mount sys-kernel-debug.mount sys-kernel-tracing.mount sys-fs-fuse-connections.mount timers.target \
    systemd-binfmt.service proc-sys-fs-binfmt_misc.automount systemd-networkd.service systemd-resolved.service; do
    ln -s /dev/null "etc/systemd/system/$each"
done

mount -t tmpfs -o mode=755 tmpfs dev
for each in null zero full random urandom tty; do
    touch "dev/$each"
    mount --bind "/dev/$each" "dev/$each"
done
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts dev/pts
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
mount -t tmpfs -o mode=1777 tmpfs dev/shm
mount -t proc proc proc
mount --bind -o ro proc/sys proc/sys
mount -t sysfs -o ro sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t tmpfs -o mode=755 tmpfs run
chroot . ldconfig
pivot_root . old
umount -l /old
exec env -i container=gantry PATH=/usr/sbin:/usr/bin /lib/systemd/systemd --unit=multi-user.target
