package bulk

import "errors"

// ClaimWorking claims interfaces without halted endpoints. If an endpoint is halted, it resets
// the device and claims it again. With only one alternate setting, claiming again does not
// clear a halt.
func ClaimWorking(d Device, all ...Pipes) ([]Stream, error) {
	streams, err := claimAll(d, all)
	if err != nil {
		return nil, err
	}
	// An endpoint's status is readable only after its interface is claimed.
	isHalted, err := halted(d, all)
	if err == nil && !isHalted {
		return streams, nil
	}
	if err := errors.Join(err, closeAll(streams)); err != nil {
		return nil, err
	}
	if err := d.Reset(); err != nil {
		return nil, err
	}
	return claimAll(d, all)
}

func claimAll(d Device, all []Pipes) (streams []Stream, err error) {
	for _, p := range all {
		s, err := d.Claim(p)
		if err != nil {
			return nil, errors.Join(err, closeAll(streams))
		}
		streams = append(streams, s)
	}
	return streams, nil
}

func closeAll(streams []Stream) (err error) {
	for _, s := range streams {
		err = errors.Join(err, s.Close())
	}
	return err
}

// halted reports whether an endpoint is halted.
func halted(d Device, all []Pipes) (bool, error) {
	const endpointStatus, getStatus, halt = 0x82, 0x00, 1
	for _, p := range all {
		for _, endpoint := range []uint8{p.Out, p.In} {
			if endpoint == 0 {
				continue
			}
			status := make([]byte, 2)
			if _, err := d.Control(endpointStatus, getStatus, 0, uint16(endpoint), status); err != nil {
				return false, err
			}
			if status[0]&halt != 0 {
				return true, nil
			}
		}
	}
	return false, nil
}
