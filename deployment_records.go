package slipway

// DeploymentRecords are the reads of deployments beyond one and a page; it is part of Tx.
type DeploymentRecords interface {
	// DueDeployment returns the deployment whose Due is the earliest; CodeNotFound if none waits for time.
	DueDeployment() (Deployment, error)
	// CountDeployments returns how many deployments q selects; Limit and Offset do not count.
	CountDeployments(q DeploymentQuery) (int, error)
}
