module capture

go 1.26

require k8s.io/apiserver v0.36.3
