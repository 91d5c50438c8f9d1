package slipway

// News is what a control service learns of a change that another one made to the records they share.
type News struct {
	// Missed: for a while nothing was heard, so anything may have changed; the other fields are empty.
	Missed bool
	// DeploymentID is the deployment that changed, and ListenerID the listener it belongs to; "" and "" = something else.
	DeploymentID, ListenerID string
}
