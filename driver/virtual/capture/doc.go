// Package capture passes the frames of a capture file, pcapng or pcap, through a card, and writes a
// pcapng that has what left the card as well.
//
// Interface N of the capture is Ethernet port N of the card. A frame has an FCS if its epb_flags or the
// if_fcslen of its interface have one. Without either, and in a pcap, it has none: the card then gets it
// with the right FCS and padded to 60 bytes, as a network card sends it. Such a capture has no runts and
// no damaged frames.
//
// The output has the input's frames, inbound by their epb_flags, each followed by the outbound frames that
// it caused, with its time stamp. Frames that leave because time passes come before the next input frame,
// and have the time stamp of the last one. Outbound frames have an FCS once an inbound one had; epb_flags show it.
//
// Before each frame the card's clock advances by the time since the last one, and by 8,192 cycles at least,
// so that no limit on the rate of its answers depends on how long the card takes for a frame.
package capture
