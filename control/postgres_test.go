package control_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/store/postgres"
	"github.com/slipway-dev/slipway/store/postgres/pgtest"
	"github.com/slipway-dev/slipway/store/sqlite"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// closing is a store that its test closes.
type closing interface {
	slipway.Store
	Close() error
}

// openStore is SQLite, but below TestOnPostgres.
func openStore(t *testing.T) (closing, error) {
	if strings.HasPrefix(t.Name(), "TestOnPostgres/") {
		return postgres.OpenControl(t.Context(), pgtest.URL(t))
	}
	return sqlite.OpenControl(filepath.Join(t.TempDir(), "control.db"))
}

// TestOnPostgres runs the service's tests on the other database.
func TestOnPostgres(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]func(*testing.T){
		"TestDeletedDeploymentIsKeptThenPurged":                    TestDeletedDeploymentIsKeptThenPurged,
		"TestRestoreBringsTheActiveRevisionBack":                   TestRestoreBringsTheActiveRevisionBack,
		"TestPurgeIsFinal":                                         TestPurgeIsFinal,
		"TestAStaleGoneDoesNotEndARestoredDeployment":              TestAStaleGoneDoesNotEndARestoredDeployment,
		"TestDeleteAll":                                            TestDeleteAll,
		"TestAnAttemptThatWasTakenOverHasNoEffect":                 TestAnAttemptThatWasTakenOverHasNoEffect,
		"TestTheTracingProjectOutlivesItsDeploymentUnlessAskedFor": TestTheTracingProjectOutlivesItsDeploymentUnlessAskedFor,
		"TestARevisionGoesLive":                                    TestARevisionGoesLive,
		"TestEnvironmentOfABlueprint":                              TestEnvironmentOfABlueprint,
		"TestAFailedCandidateLeavesTheActiveOne":                   TestAFailedCandidateLeavesTheActiveOne,
		"TestFailedFirstBuildLeavesItUnused":                       TestFailedFirstBuildLeavesItUnused,
		"TestCoalescing":                                           TestCoalescing,
		"TestInterruptionStopsABuildAndLetsTheNextGoOn":            TestInterruptionStopsABuildAndLetsTheNextGoOn,
		"TestTheQueueOfThisProcess":                                TestTheQueueOfThisProcess,
		"TestReportsOfBuildersAreAudited":                          TestReportsOfBuildersAreAudited,
		"TestRecoverFreesBuildsAtOnce":                             TestRecoverFreesBuildsAtOnce,
		"TestRedeployNeedsNoBuild":                                 TestRedeployNeedsNoBuild,
		"TestStaleReportsAreRefused":                               TestStaleReportsAreRefused,
		"TestFeedBlocksUntilSomethingChanges":                      TestFeedBlocksUntilSomethingChanges,
		"TestIdenticalPatchesInFlightMakeAtMostOneRevisionEach":    TestIdenticalPatchesInFlightMakeAtMostOneRevisionEach,
		"TestLogsForFollowers":                                     TestLogsForFollowers,
		"TestBootstrapGivesTheKeyOnce":                             TestBootstrapGivesTheKeyOnce,
		"TestUploadExpires":                                        TestUploadExpires,
		"TestAuthenticationAsksTheDatabaseOnce":                    TestAuthenticationAsksTheDatabaseOnce,
		"TestRevocationCountsAtOnce":                               TestRevocationCountsAtOnce,
		"TestRevocationReachesAProcessThatHearsNothing":            TestRevocationReachesAProcessThatHearsNothing,
		"TestRotation":                                             TestRotation,
		"TestWhoIsLetIn":                                           TestWhoIsLetIn,
		"TestDeploymentsNotEnabled":                                TestDeploymentsNotEnabled,
		"TestAuditTellsBeforeAndAfter":                             TestAuditTellsBeforeAndAfter,
		"TestRefusalsAreRecordedOnceAMinute":                       TestRefusalsAreRecordedOnceAMinute,
		"TestSecretsAreShownToTheRolesThatMayReadThem":             TestSecretsAreShownToTheRolesThatMayReadThem,
		"TestSweepKeepsWhatIsYoung":                                TestSweepKeepsWhatIsYoung,
		"TestEveryChangeOfADeploymentIsTold":                       TestEveryChangeOfADeploymentIsTold,
		"TestEveryChangeOfAListenerIsTold":                         TestEveryChangeOfAListenerIsTold,
		"TestEveryChangeOfAWebhookIsTold":                          TestEveryChangeOfAWebhookIsTold,
	} {
		t.Run(name, test)
	}
}
