package emit

import (
	"fmt"
	"strings"

	"tributary/driver/wire"
	"tributary/hwgen/plan"
)

// picture draws the card as block.svg: every port and its slots, one lane, the result cache and the
// output. The up port is the last one.
func picture(p *plan.Plan) []byte {
	d := newDrawing(p)
	d.inputs()
	d.memories()
	if p.Node() == "" {
		d.window()
	} else {
		d.tree()
	}
	d.output()
	if text := othersWay(p); text != "" {
		d.passing(text)
	}
	return d.svg()
}

// Sizes in pixels.
const (
	rowHeight  = 26 // from one worker to the next
	levelWidth = 72 // from one level of the tree to the next
	nodeRadius = 9
	topMargin  = 78
	leftMargin = 24
	boxHeight  = 20
	tallHeight = 80 // minimum height of a box beside all workers

	passingHeight = 30 // of the way of frames for others
)

// drawing is an unfinished picture.
type drawing struct {
	plan *plan.Plan
	body strings.Builder
	x    int // right end of the drawing so far
}

func newDrawing(p *plan.Plan) *drawing { return &drawing{plan: p, x: leftMargin} }

// lines returns how many inputs, memories and operands of a lane there are: the up port's is the last.
func (d *drawing) lines() int { return d.plan.Inputs() }

// port returns the name of the port at a line; up is that of the up port.
func (d *drawing) port(line int, up string) string {
	if line == d.plan.Workers {
		return up
	}
	return fmt.Sprintf("worker %d", line)
}

// row returns the y coordinate of a worker's line, or of the up port's.
func (d *drawing) row(w int) int { return topMargin + rowHeight*w + rowHeight/2 }

// bottom returns the y coordinate below the last line.
func (d *drawing) bottom() int { return topMargin + rowHeight*d.lines() }

// middle returns the y coordinate of elements that all workers share.
func (d *drawing) middle() int { return (topMargin + d.bottom()) / 2 }

// inputs draws the link or the network and its receiver, or a port for each worker and the parent.
func (d *drawing) inputs() {
	p := d.plan
	shared := p.Shell.Link || p.Shell.Ethernet
	switch {
	case p.Shell.Link:
		d.tall("link", 84, fmt.Sprintf("%d bits", p.Link), "find frame,", "check CRCs")
	case p.Shell.Ethernet:
		d.tall("Ethernet", 100, count(p.Ethernet, "port"), fmt.Sprintf("%d bits", p.Link), "check frames")
		d.onwards()
		if p.Shell.Code == wire.ShellRoCE {
			d.tall("queue", 110, "whole packets", "of connections,", "with good ICRC")
			d.onwards()
			d.tall("connection", 110, "gives rank", "and epoch,", "PSN the VID")
			break
		}
		d.tall("queue", 110, "whole packets", "with good CRC")
		d.onwards()
		d.tall("address", 110, "the sender's is", "that of its rank")
	}
	if shared {
		d.x += 28
	}
	for w := range d.lines() {
		if shared {
			d.arrow(d.x-28, d.row(w), d.x, d.row(w))
		}
		d.box(d.x, d.row(w), 110, d.port(w, "from parent"))
	}
	d.heading(d.x, 110, "ingress", "header, checks")
	d.x += 110
}

// memories draws the slots of every port and the commit that controls them.
func (d *drawing) memories() {
	p := d.plan
	x := d.x + 36
	for w := range d.lines() {
		d.arrow(d.x, d.row(w), x, d.row(w))
		d.box(x, d.row(w), 150, fmt.Sprintf("%d slots × %s", p.Slots, count(p.Beats, "beat")))
	}
	d.heading(x, 150, "slot memory", "a commit every 2 cycles")
	d.x = x + 150
}

// window draws a lane that aligns all operands to the largest exponent and rounds once.
func (d *drawing) window() {
	p := d.plan
	x := d.x + 36
	for w := range d.lines() {
		d.arrow(d.x, d.row(w), x, d.row(w))
		d.box(x, d.row(w), 90, "align")
		d.arrow(x+90, d.row(w), x+118, d.row(w))
	}
	d.heading(x, 90, fmt.Sprintf("lane 0 of %d", p.Lanes), "latency "+count(p.SumLatency, "cycle"))
	d.x = x + 118
	again := []string{"as integers"}
	if p.Lane.Shared != nil {
		again = append(again, "undecided:", "once more")
	}
	d.tall("sum", 92, again...)
	d.onwards()
	d.tall("round", 72, "once")
	d.arrow(d.x, d.middle(), d.x+40, d.middle())
	d.x += 40
}

// tree draws a lane that joins neighbours; an unpaired operand passes.
func (d *drawing) tree() {
	p := d.plan
	start := d.x
	var level []int // y coordinates of the next level's inputs
	for w := range d.lines() {
		level = append(level, d.row(w))
	}
	if len(level) == 1 {
		d.node(d.x+levelWidth, level[0], "")
		d.line(d.x, level[0], d.x+levelWidth-nodeRadius, level[0])
		d.x += levelWidth + nodeRadius
	}
	for len(level) > 1 {
		x := d.x + levelWidth
		var above []int
		for i := 0; i < len(level); i += 2 {
			if i+1 == len(level) {
				d.line(d.x, level[i], x+nodeRadius, level[i])
				above = append(above, level[i])
				continue
			}
			y := (level[i] + level[i+1]) / 2
			d.line(d.x, level[i], x, y)
			d.line(d.x, level[i+1], x, y)
			d.node(x, y, p.Node())
			above = append(above, y)
		}
		level = above
		d.x = x + nodeRadius
	}
	d.heading(start, d.x-start, fmt.Sprintf("lane 0 of %d", p.Lanes), "latency "+count(p.SumLatency, "cycle"))
	d.arrow(d.x, level[0], d.x+40, d.middle())
	d.x += 40
}

// output draws the result cache and the output.
func (d *drawing) output() {
	p := d.plan
	d.tall("results", 110, fmt.Sprintf("%d × %s", p.Slots, count(p.Beats, "beat")), "sent and kept", "for replays")
	d.onwards()
	switch {
	case p.Shell.Link:
		d.tall("link", 84, fmt.Sprintf("%d bits", p.Link), "frames,", "CRCs")
		return
	case p.Shell.Ethernet:
		if p.Shell.Code == wire.ShellRoCE {
			d.tall("headers", 110, "one for each", "connection")
		} else {
			d.tall("copies", 110, "one for each", "address")
		}
		d.onwards()
		d.tall("Ethernet", 100, count(p.Ethernet, "port"), fmt.Sprintf("%d bits", p.Link), "frames, CRCs")
		return
	}
	for w := range d.lines() {
		d.box(d.x, d.row(w), 110, d.port(w, "to parent"))
	}
	d.heading(d.x, 110, "egress", "a queue a port")
	d.x += 110
}

// onwards draws an arrow to the next box that all workers share.
func (d *drawing) onwards() {
	d.arrow(d.x, d.middle(), d.x+28, d.middle())
	d.x += 28
}

// othersWay describes the way of frames that are not for the card, or returns "" if there is none.
func othersWay(p *plan.Plan) string {
	switch {
	case p.Ethernet > 1:
		return "frames for others: a switch"
	case p.Shell.Code == wire.ShellRoCE:
		return "frames for neighbours: a relay"
	}
	return ""
}

// passing draws the way of frames for others, below all boxes, from the first one to the last.
func (d *drawing) passing(text string) {
	const middle = 50 // of an Ethernet port's box
	from, to := leftMargin+middle, d.x-middle
	below := d.tallBottom()
	fmt.Fprintf(&d.body, "<path d=\"M%d %dV%dH%dV%d\" marker-end=\"url(#tip)\"/>\n", from, below, below+passingHeight, to, below)
	d.text((from+to)/2, below+passingHeight-6, "small", text)
}

// tallBottom returns the y coordinate below the boxes beside all workers.
func (d *drawing) tallBottom() int { return max(d.bottom(), d.middle()+tallHeight/2) }

// tall draws a box beside all workers, with lines of text in it.
func (d *drawing) tall(title string, width int, text ...string) {
	height := max(d.bottom()-topMargin, tallHeight)
	top := d.middle() - height/2
	d.rect(d.x, top, width, height)
	y := d.middle() - 8*len(text) + 4
	d.text(d.x+width/2, y-4, "title", title)
	for i, t := range text {
		d.text(d.x+width/2, y+14+15*i, "small", t)
	}
	d.x += width
}

func (d *drawing) box(x, y, width int, text string) {
	d.rect(x, y-boxHeight/2, width, boxHeight)
	d.text(x+width/2, y+4, "small", text)
}

// heading writes two lines above the elements between x and x+width.
func (d *drawing) heading(x, width int, title, sub string) {
	d.text(x+width/2, topMargin-24, "title", title)
	d.text(x+width/2, topMargin-8, "small", sub)
}

func (d *drawing) rect(x, y, width, height int) {
	fmt.Fprintf(&d.body, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"4\"/>\n", x, y, width, height)
}

func (d *drawing) text(x, y int, class, text string) {
	fmt.Fprintf(&d.body, "<text x=\"%d\" y=\"%d\" class=\"%s\">%s</text>\n", x, y, class, text)
}

func (d *drawing) line(x1, y1, x2, y2 int) {
	fmt.Fprintf(&d.body, "<path d=\"M%d %dL%d %d\"/>\n", x1, y1, x2, y2)
}

func (d *drawing) arrow(x1, y1, x2, y2 int) {
	fmt.Fprintf(&d.body, "<path d=\"M%d %dL%d %d\" marker-end=\"url(#tip)\"/>\n", x1, y1, x2, y2)
}

// node draws a tree's node, or the canonicalization of a single operand.
func (d *drawing) node(x, y int, sign string) {
	fmt.Fprintf(&d.body, "<circle cx=\"%d\" cy=\"%d\" r=\"%d\"/>\n", x, y, nodeRadius)
	d.text(x, y+4, "small", sign)
}

// svg returns the whole picture.
func (d *drawing) svg() []byte {
	p := d.plan
	width, height := d.x+leftMargin, d.tallBottom()+leftMargin
	if othersWay(p) != "" {
		height += passingHeight
	}
	return fmt.Appendf(nil, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d">
<style>
svg { font-family: sans-serif; }
rect, circle { fill: #eef4fb; stroke: #2b5b8c; }
path { fill: none; stroke: #2b5b8c; }
text { fill: #16324f; font-size: 12px; text-anchor: middle; }
.title { font-size: 13px; font-weight: bold; }
.head { font-size: 15px; font-weight: bold; text-anchor: start; }
</style>
<marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto"><path d="M0 0L8 4L0 8z" style="fill:#2b5b8c"/></marker>
<rect x="0" y="0" width="%d" height="%d" style="fill:#fff;stroke:none"/>
<text x="%d" y="26" class="head">%s × %s, %s, sum %s, shell %s</text>
%s</svg>
`, width, height, width, height, width, height, leftMargin, count(p.Lanes, "lane"), count(p.Workers, "worker"), formatNames(p), p.Sum.Name, p.Shell.Name, d.body.String())
}

// count returns "1 lane", "2 lanes".
func count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}
