package acrosstest

// leafKey is the key of leaf l's random numbers, from that of the Random. The first leaf has the
// Random's own; the others' differ from it by the last step of MurmurHash3 on l.
func leafKey(key uint32, l int) uint32 {
	x := uint32(l)
	x = (x ^ x>>16) * 0x85ebca6b
	x = (x ^ x>>13) * 0xc2b2ae35
	return key ^ x ^ x>>16
}
