#!/usr/bin/env bash
# scripts/netns.sh: ranks on two hosts, which are two network namespaces with a link of a given rate between them. As root,
# with ip and tc (Debian: iproute2), MPICH and, if it is there, Open MPI; without them it is skipped. Ranks have odd and
# even numbers in turn. A delay needs netem, which not every kernel has, so there is none: only the rate is limited.
#
#   RATES='1gbit 10gbit'   of the link, for the figures
#   STEPS='suite figures cut'   tests of package disttest at the first rate; times of sums; an error when the link is cut
set -euo pipefail
. "$(dirname "$0")/env.sh"

RATES=${RATES:-1gbit 10gbit}
STEPS=${STEPS:-suite figures cut}

skip() { say "netns: skipped, $1"; exit 0; }
[ "$(id -u)" = 0 ] || skip 'network namespaces are for root'
for c in ip tc unshare; do command -v $c >/dev/null || skip "no $c (Debian: iproute2, util-linux)"; done
command -v mpiexec.hydra >/dev/null || skip 'no mpiexec.hydra (Debian: mpich)'

work=$(mktemp -d)
a=mra$$ b=mrb$$
finish() {
	ip netns del $a 2>/dev/null || true
	ip netns del $b 2>/dev/null || true
	rm -rf "$work"
}
trap finish EXIT
{ ip netns add $a && ip netns add $b; } 2>"$work/why" || skip "no namespaces here: $(cat "$work/why")"
ip link add $a type veth peer name $b
for n in $a $b; do
	ip link set $n netns $n
	ip -n $n link set lo up
	ip -n $n link set $n up
done
ip -n $a addr add 10.203.0.1/24 dev $a
ip -n $b addr add 10.203.0.2/24 dev $b

# rate limits the link in both directions. Its queue is longer than TCP's windows, so no packet is lost.
rate() {
	for n in $a $b; do tc -n $n qdisc replace dev $n root tbf rate "$1" burst 256kb latency 400ms; done
}
rate "${RATES%% *}" 2>"$work/why" || skip "tc has no tbf here: $(cat "$work/why")"

# enter HOST COMMAND...: what ssh would do. Each namespace has a name of its own, as hosts do.
cat >"$work/enter" <<END
#!/usr/bin/env bash
while [[ \$1 == -* ]]; do shift; done
case \$1 in *.1) n=$a h=host-a ;; *) n=$b h=host-b ;; esac
shift
exec ip netns exec \$n unshare --uts sh -c 'hostname '\$h'; exec sh -c "\$*"' sh "\$@"
END
cat >"$work/mpich" <<END
#!/usr/bin/env bash
[ "\$*" != --version ] || exec mpiexec.hydra --version
export UCX_TLS=tcp,self UCX_NET_DEVICES=$a,$b
exec ip netns exec $a unshare --uts sh -c 'hostname host-a; exec "\$@"' sh \\
	mpiexec.hydra -iface $a -launcher ssh -launcher-exec $work/enter -hosts 10.203.0.1,10.203.0.2 -ppn 1 "\$@"
END
cat >"$work/openmpi" <<END
#!/usr/bin/env bash
[ "\$*" != --version ] || exec mpirun.openmpi --version
exec ip netns exec $a unshare --uts sh -c 'hostname host-a; exec "\$@"' sh \\
	mpirun.openmpi --mca plm_rsh_agent $work/enter --mca pml ob1 --mca btl tcp,self \\
	--mca btl_tcp_if_include 10.203.0.0/24 --mca oob_tcp_if_include 10.203.0.0/24 -H 10.203.0.1:9,10.203.0.2:9 --map-by node "\$@"
END
chmod +x "$work"/*
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
failed=
step() { # name, command: the other steps run although one fails
	say "$1"
	"${@:2}" || failed+=" $1"
}
launchers=mpich
command -v mpirun.openmpi >/dev/null && launchers+=' openmpi'

go test -vet=off -c -o "$work/mpi.test" ./dist/mpi
cd dist/mpi

suite() {
	for l in $launchers; do
		MILLRACE_MPI=$l step "netns-suite-$l" "$work/mpi.test" -mpirun "$work/$l" -test.run '^TestSuite$' -test.timeout 10m
	done
}

figures() {
	for r in $RATES; do
		rate "$r"
		for l in $launchers; do
			say "netns: $l at $r"
			MPI_TEST_PROGRAM=compare MILLRACE_MPI=$l "$work/$l" -n 2 "$work/mpi.test" | grep figure
		done
	done
	rate "${RATES%% *}"
}

# cut: the link is lost while two ranks add. Each must name the other one after the Deadline.
cut() {
	for l in $launchers; do step "netns-cut-$l" cut_under "$l"; done
}

cut_under() {
	local folder=$work/cut-$1 job
	mkdir "$folder"
	MPI_TEST_PROGRAM=steps MPI_TEST_FOLDER=$folder MPI_TEST_DEADLINE=5s MILLRACE_MPI=$1 "$work/$1" -n 2 "$work/mpi.test" >"$folder/out" 2>&1 &
	job=$!
	until [ -e "$folder/0 pid" ] && [ -e "$folder/1 pid" ]; do sleep 0.1; done
	sleep 1
	ip -n $a link set $a down
	for r in 0 1; do
		for _ in $(seq 200); do [ ! -e "$folder/$r error" ] || break; sleep 0.1; done
	done
	kill -9 "$(cat "$folder/0 pid")" "$(cat "$folder/1 pid")" $job 2>/dev/null || true # their launcher cannot reach both
	wait $job 2>/dev/null || true
	ip -n $a link set $a up
	ip -n $a addr replace 10.203.0.1/24 dev $a
	grep -h . "$folder/0 error" "$folder/1 error" || { cat "$folder/out"; return 1; }
	grep -q '^no answer of 1: ' "$folder/0 error" && grep -q '^no answer of 0: ' "$folder/1 error"
}

for s in $STEPS; do $s; done
[ -z "$failed" ] || { say "failed:$failed"; exit 1; }
