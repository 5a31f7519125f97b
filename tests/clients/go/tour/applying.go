package main

import (
	"eagleray/tests/clients/go/session"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applyapps "k8s.io/client-go/applyconfigurations/apps/v1"
	applycore "k8s.io/client-go/applyconfigurations/core/v1"
	applymeta "k8s.io/client-go/applyconfigurations/meta/v1"
)

// apply writes by typed apply configurations: ownership, conflicts, extraction of what one owns, and a status.
func apply(s *session.Session) {
	all := clientset(s).AppsV1().Deployments(s.Namespace)
	labels := map[string]string{"app": "web"}
	wanted := func(containers ...*applycore.ContainerApplyConfiguration) *applyapps.DeploymentApplyConfiguration {
		pod := applycore.PodTemplateSpec().WithLabels(labels).WithSpec(applycore.PodSpec().WithContainers(containers...))
		return applyapps.Deployment("web", s.Namespace).WithSpec(applyapps.DeploymentSpec().
			WithReplicas(0).WithSelector(applymeta.LabelSelector().WithMatchLabels(labels)).WithTemplate(pod))
	}
	web := applycore.Container().WithName("web").WithImage("busybox")
	side := applycore.Container().WithName("side").WithImage("busybox")
	first := metav1.ApplyOptions{FieldManager: "first"}
	second := metav1.ApplyOptions{FieldManager: "second"}
	made := session.Must(all.Apply(s.Context, wanted(web, side), first))
	session.Equal("containers", names(made), []string{"web", "side"})

	another := applyapps.Deployment("web", s.Namespace).WithSpec(applyapps.DeploymentSpec().WithReplicas(1))
	_, err := all.Apply(s.Context, another, second)
	session.True("somebody else's field is a conflict", apierrors.IsConflict(err))
	status := err.(apierrors.APIStatus).Status()
	session.Equal("the field in conflict", status.Details.Causes[0].Field, ".spec.replicas")
	session.Equal("why", status.Details.Causes[0].Type, metav1.CauseTypeFieldManagerConflict)
	second.Force = true
	forced := session.Must(all.Apply(s.Context, another, second))
	session.Equal("size", *forced.Spec.Replicas, int32(1))

	mine := session.Must(applyapps.ExtractDeployment(forced, "first"))
	session.True("what was taken over is no longer mine", mine.Spec.Replicas == nil)
	session.Equal("but the containers are", len(mine.Spec.Template.Spec.Containers), 2)
	mine.Spec.Template.Spec.Containers = mine.Spec.Template.Spec.Containers[:1]
	fewer := session.Must(all.Apply(s.Context, mine, first))
	session.Equal("containers after one was dropped", names(fewer), []string{"web"})
	session.Equal("size", *fewer.Spec.Replicas, int32(1))

	condition := applyapps.DeploymentCondition().WithType("Tried").WithStatus(corev1.ConditionTrue)
	told := applyapps.Deployment("web", s.Namespace).WithStatus(applyapps.DeploymentStatus().WithConditions(condition))
	session.Must(all.ApplyStatus(s.Context, told, metav1.ApplyOptions{FieldManager: "teller"}))
	found := session.Must(all.Get(s.Context, "web", metav1.GetOptions{}))
	kept := false
	for _, one := range found.Status.Conditions {
		kept = kept || one.Type == appsv1.DeploymentConditionType("Tried")
	}
	session.True("the condition is there", kept)
	owners := map[string]string{}
	for _, one := range found.ManagedFields {
		owners[one.Manager] = one.Subresource
	}
	session.Equal("who wrote the status", owners["teller"], "status")
	session.Check(all.Delete(s.Context, "web", metav1.DeleteOptions{}))
}

func names(deployment *appsv1.Deployment) []string {
	var found []string
	for _, one := range deployment.Spec.Template.Spec.Containers {
		found = append(found, one.Name)
	}
	return found
}
